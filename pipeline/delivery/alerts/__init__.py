"""Alerts: rules choose targets and times, targets send, the store keeps what was sent."""

from pipeline.delivery.alerts.desk import Desk
from pipeline.delivery.alerts.dry_run import DryRun, send_test
from pipeline.delivery.alerts.record import DeliveryRecord
from pipeline.delivery.alerts.rules_file import AlertRules, load_rules
from pipeline.delivery.alerts.targets import Http
from pipeline.delivery.alerts.worker import AlertWorker

__all__ = ["AlertRules", "AlertWorker", "Desk", "DryRun", "Http", "DeliveryRecord", "load_rules", "send_test"]
