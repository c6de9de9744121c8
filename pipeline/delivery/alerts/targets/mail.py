"""E-mail over SMTP, a conversation for each regression."""

from __future__ import annotations

import asyncio
import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate
from typing import Annotated, Literal

from pydantic import Field

from pipeline.delivery.alerts.markup import as_html, as_plain
from pipeline.delivery.alerts.message import Note
from pipeline.delivery.alerts.secret import Secret
from pipeline.delivery.alerts.targets.base import Target
from pipeline.delivery.alerts.targets.http import TIMEOUT_S, Http, TargetRefused, TargetUnavailable

Address = Annotated[str, Field(pattern=r"^[^\s@<>,]+@[^\s@<>,]+$")]


class Email(Target):
    """Readers of a mail server. A message sent once more has the Message-ID that it had."""

    kind: Literal["email"]
    host: str
    port: int = Field(default=587, gt=0, lt=65_536)
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str = ""
    password: Secret | None = None
    sender: Address = Field(alias="from")
    readers: tuple[Address, ...] = Field(alias="to", min_length=1)

    async def send(self, note: Note, thread: str, http: Http) -> str:
        """Send a message, a reply where there is a thread: its Message-ID and its subject."""
        domain = self.sender.rpartition("@")[2]
        own = f"<{note.id}.{note.occasion}@{domain}>"
        first, _, subject = thread.partition(" ")
        message = EmailMessage()
        message["Subject"] = f"Re: {subject}" if first else note.title
        message["From"], message["To"] = self.sender, ", ".join(self.readers)
        message["Message-ID"], message["Date"] = own, formatdate()
        message["Auto-Submitted"] = "auto-generated"
        if first:
            message["In-Reply-To"] = message["References"] = first
        message.set_content(f"{note.title}\n\n{as_plain(note.lines)}\n")
        message.add_alternative(as_html(note.lines), subtype="html")
        await asyncio.to_thread(self._deliver, message)
        return thread or f"{own} {note.title}"

    def _deliver(self, message: EmailMessage) -> None:
        context = ssl.create_default_context()
        try:
            with (
                smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_S, context=context)
                if self.security == "tls"
                else smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_S)
            ) as server:
                if self.security == "starttls":
                    server.starttls(context=context)
                if self.password is not None:
                    server.login(self.user, self.password.get_secret_value())
                server.send_message(message)
        except smtplib.SMTPRecipientsRefused as error:
            codes = {code for code, _ in error.recipients.values()}
            kind = TargetRefused if min(codes, default=0) >= 500 else TargetUnavailable
            raise kind("no reader was taken") from None
        except smtplib.SMTPResponseException as error:
            text = f"SMTP {error.smtp_code}"
            raise (TargetRefused if error.smtp_code >= 550 else TargetUnavailable)(text) from None
        except (smtplib.SMTPException, OSError) as error:
            raise TargetUnavailable(str(error) or type(error).__name__) from None
