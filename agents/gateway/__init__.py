"""The gateway: profiles and metrics that existing agents push, as messages.

Every request takes one way, over HTTP and gRPC (``intake.Intake.take``): its sender is identified; it is
unpacked within a bound, decoded in a thread, counted against quotas, and put into the publisher's buffer.
What differs between protocols is a receiver (``base.Receiver``), made by a module with

- ``routes``: the paths it is posted to, those of gRPC among them,
- ``decode(request, setup) -> Decoded``: a pure function, which raises ``base.Refusal`` or InvalidMessage,
- ``reply(request, result) -> Reply``: the answer in its protocol; plain text by default.

A new one is such a module and a line in ``receivers.py``. It knows no clock, no broker and no log:
``Request.now`` is the time, ``Setup`` has the names of labels and the largest message. What it decodes are
``base.Part``: one message each, with the service and the samples that its quota counts, and an id that is
the same when a client sends the same once more.
"""
