"""The limits on running reviews and on their duration."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from typing import Any

import pytest

from konverge.webhooks import MutatingWebhook, ValidatingWebhook, Webhooks
from webhook_examples import WebApp, admission_review, call_webhook, check, webapp

REVIEW = admission_review(webapp())


async def wait_for_ever(*_: Any) -> None:
    await asyncio.Event().wait()


async def test_a_function_that_takes_too_long_is_a_failed_call_before_the_time_is_over() -> None:
    hook = ValidatingWebhook(WebApp, wait_for_ever)

    answer = await call_webhook(hook, REVIEW, timeout=10)

    assert asyncio.get_running_loop().time() == 9.5
    assert answer.code == 504
    text = "validate.v1.webapps.hooks.example.com did not respond within 10 s"
    assert json.loads(answer.body)["message"] == text


async def test_no_review_takes_longer_than_the_server_waits() -> None:
    await call_webhook(ValidatingWebhook(WebApp, wait_for_ever), REVIEW, timeout=3600)

    assert asyncio.get_running_loop().time() == 29.5


async def test_a_function_that_runs_out_of_its_own_time_is_denied_not_late() -> None:
    async def impatient(*_: Any) -> None:
        async with asyncio.timeout(1):
            await asyncio.Event().wait()

    answer = await call_webhook(ValidatingWebhook(WebApp, impatient), REVIEW)

    assert answer.code == 200
    assert json.loads(answer.body)["response"]["status"]["code"] == 500


async def test_the_number_of_running_reviews_is_limited_and_all_get_a_response() -> None:
    running = 0
    most = 0

    async def slow(*_: Any) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1

    hook = ValidatingWebhook(WebApp, slow)
    hooks = Webhooks(hook, concurrency=3)
    answers = await asyncio.gather(*(hooks.handle(hook.path, REVIEW) for _ in range(9)))

    assert most == 3
    assert [answer.code for answer in answers] == [200] * 9
    assert asyncio.get_running_loop().time() == 3


async def test_a_review_that_waits_until_its_timeout_gets_a_504() -> None:
    hook = ValidatingWebhook(WebApp, wait_for_ever)
    hooks = Webhooks(hook, concurrency=1)
    answers = await asyncio.gather(hooks.handle(hook.path, REVIEW), hooks.handle(hook.path, REVIEW, timeout=1))

    assert [answer.code for answer in answers] == [504, 504]


async def test_reviews_over_the_limit_of_waiting_ones_are_rejected_at_once() -> None:
    hook = ValidatingWebhook(WebApp, wait_for_ever)
    hooks = Webhooks(hook, concurrency=1)
    answers = await asyncio.gather(*(hooks.handle(hook.path, REVIEW) for _ in range(13)))

    assert sorted(answer.code for answer in answers) == [503] * 2 + [504] * 11


@pytest.mark.real_time(limit=60)
async def test_plain_functions_run_in_threads_and_do_not_block_the_loop() -> None:
    gate = threading.Barrier(4, timeout=30)

    def meet(*_: Any) -> None:
        gate.wait()

    hook = ValidatingWebhook(WebApp, meet)
    hooks = Webhooks(hook)
    answers = await asyncio.gather(*(hooks.handle(hook.path, REVIEW) for _ in range(4)))

    assert [answer.code for answer in answers] == [200] * 4


@pytest.mark.real_time(limit=60)
async def test_a_plain_function_that_hangs_keeps_its_thread_and_nothing_else() -> None:
    gate = threading.Event()
    hanging = MutatingWebhook(WebApp, lambda *_: gate.wait(30) and None)
    hooks = Webhooks(hanging, check, concurrency=2)
    late = await hooks.handle(hanging.path, REVIEW, timeout=0.2)
    fine = await hooks.handle(check.path, REVIEW, timeout=30)
    gate.set()

    assert (late.code, fine.code) == (504, 200)


HANGS = """
import asyncio, sys, threading
sys.path[:0] = {path!r}
from webhook_examples import WebApp, admission_review, call_webhook, webapp
from konverge.webhooks import ValidatingWebhook
hook = ValidatingWebhook(WebApp, lambda *_: threading.Event().wait())
print(asyncio.run(call_webhook(hook, admission_review(webapp()), timeout=0.2)).code)
"""


def test_a_plain_function_that_hangs_does_not_keep_the_process_from_ending() -> None:
    script = HANGS.format(path=sys.path)

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)

    assert (done.stdout, done.returncode) == ("504\n", 0), done.stderr


async def test_what_came_of_reviews_is_counted() -> None:
    slow = MutatingWebhook(WebApp, wait_for_ever)
    hooks = Webhooks(check, slow)
    for body in (REVIEW, REVIEW, admission_review(webapp(image="nginx")), b""):
        await hooks.handle(check.path, body)
    await hooks.handle(slow.path, REVIEW)
    counted, other = hooks.stats().endpoints

    assert (counted.allowed, counted.denied, counted.invalid, other.timed_out) == (2, 1, 1, 1)
    assert (hooks.stats().running, hooks.stats().waiting) == (0, 0)


def test_two_webhooks_at_one_path_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"two webhooks have the path /validate/.*: give one of them a name"):
        Webhooks(check, ValidatingWebhook(WebApp, wait_for_ever))
