"""``make lab``: commits of the demo's shop judged before their release, by replayed traffic."""
