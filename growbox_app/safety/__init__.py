"""Whether a call may run: a pure judgement between an executor's plan and its run. Start reading at `policy.py`."""
