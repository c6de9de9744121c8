"""Changes that GitHub and GitLab tell of over HTTP."""
