"""Dead letters: publishing, limits, replay."""
