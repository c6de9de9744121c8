"""Views of what the store and the topics hold: report and dashboard."""
