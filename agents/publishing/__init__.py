"""Publishing of messages: queues, spool, broker."""
