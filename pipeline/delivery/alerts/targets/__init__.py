"""Targets: destinations of alerts. A new kind is a module with its class, and one line here."""

from __future__ import annotations

from pipeline.delivery.alerts.targets.alertmanager import Alertmanager
from pipeline.delivery.alerts.targets.apprise_urls import AppriseUrls
from pipeline.delivery.alerts.targets.base import OneAlert, Target, Unsuitable
from pipeline.delivery.alerts.targets.forge import ForgeComment, ForgeIssue, ForgeStatus
from pipeline.delivery.alerts.targets.grafana import Grafana
from pipeline.delivery.alerts.targets.http import Http, TargetRefused, TargetUnavailable
from pipeline.delivery.alerts.targets.jira import Jira
from pipeline.delivery.alerts.targets.mail import Email
from pipeline.delivery.alerts.targets.opsgenie import Opsgenie
from pipeline.delivery.alerts.targets.pagerduty import PagerDuty
from pipeline.delivery.alerts.targets.slack import Slack
from pipeline.delivery.alerts.targets.teams import Teams
from pipeline.delivery.alerts.targets.webhook import Webhook

KINDS: dict[str, type[Target]] = {
    "slack": Slack,
    "teams": Teams,
    "email": Email,
    "pagerduty": PagerDuty,
    "opsgenie": Opsgenie,
    "webhook": Webhook,
    "apprise": AppriseUrls,
    "github-issue": ForgeIssue,
    "github-comment": ForgeComment,
    "github-status": ForgeStatus,
    "gitlab-issue": ForgeIssue,
    "gitlab-comment": ForgeComment,
    "gitlab-status": ForgeStatus,
    "jira": Jira,
    "grafana": Grafana,
    "alertmanager": Alertmanager,
}
"""Kinds of targets by their name in the file of rules."""

__all__ = [
    "KINDS",
    "Http",
    "OneAlert",
    "Target",
    "TargetRefused",
    "TargetUnavailable",
    "Unsuitable",
]
