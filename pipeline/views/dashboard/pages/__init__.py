"""The pages of the dashboard: each module reads, chooses the content, and renders."""
