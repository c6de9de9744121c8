"""Alerts: rules decide which events go to whom and when, targets take them, the store remembers."""

from pipeline.alerts.desk import Desk
from pipeline.alerts.dry_run import DryRun, send_test
from pipeline.alerts.record import Record
from pipeline.alerts.rules_file import AlertRules, load_rules
from pipeline.alerts.targets import Http
from pipeline.alerts.worker import AlertWorker

__all__ = ["AlertRules", "AlertWorker", "Desk", "DryRun", "Http", "Record", "load_rules", "send_test"]
