"""Broker and store on this machine, without Docker, a JVM or anything to install by hand."""
