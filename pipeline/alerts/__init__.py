"""Alerts: rules decide which events go to whom and when, targets take them, the store remembers."""

from pipeline.alerts.rules_file import AlertRules, load_rules
from pipeline.alerts.trial import DryRun, send_test
from pipeline.alerts.worker import run_alerts

__all__ = ["AlertRules", "DryRun", "load_rules", "run_alerts", "send_test"]
