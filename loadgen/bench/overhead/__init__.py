"""What sampling costs real programs, and how far its shares are from what they measured themselves."""
