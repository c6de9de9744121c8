"""The pages of the dashboard: each module reads, decides what is shown, and renders."""
