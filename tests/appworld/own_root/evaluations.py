"""Evaluations of the own tasks: source that AppWorld runs with a test tracker and the databases before and after.

A requirement's text stands in the source and, as AppWorld wants it, in the test data.
"""

ANSWERED = "the answer is the known one"
ONE_ALARM = "one alarm changed and nothing else"
ALARM_OFF = "the named alarm is off"
NO_ANSWER = "completion is declared, without an answer"
NOTHING_ELSE = "nothing changed"
ONLY_TASKS = "tasks changed and nothing else"
CHORES_DONE = "exactly the asked tasks became completed"
ONLY_MESSAGES = "messages were sent and nothing else changed"
MESSAGES_RIGHT = "each person got their line once"

_HEAD = """
import json


def evaluate(test, public_data, private_data, main_user, models, ground_truth_answer):
    answer = json.loads(models.end.supervisor.Task.all()[0].answer)
    changed = models.changed_model_names()
"""

_NO_ANSWER = f"""
    with test("{NO_ANSWER}"):
        test.case(answer, "==", None)
"""

_ANSWERED = f"""
    with test("{ANSWERED}"):
        test.answer(answer, ground_truth_answer)
"""

ALARM = f"""{_HEAD}
    _, updated, _ = models.changed_records("phone.Alarm")
    with test("{ONE_ALARM}"):
        test.case((changed, len(updated)), "==", ({{"phone.Alarm"}}, 1))
    with test("{ALARM_OFF}"):
        test.case([(own.label, own.enabled) for own in updated], "==", [(private_data.label, False)])
{_NO_ANSWER}"""

TAGS = f"""{_HEAD}
    with test("{NOTHING_ELSE}"):
        test.case(changed, "==", set())
{_ANSWERED}"""

CHORES = f"""{_HEAD}
    _, updated, _ = models.changed_records("todoist.Task")
    with test("{ONLY_TASKS}"):
        test.case(changed, "==", {{"todoist.Task"}})
    with test("{CHORES_DONE}"):
        test.case(sorted(own.title for own in updated if own.is_completed), "==", private_data.titles)
        test.case(len(updated), "==", len(private_data.titles))
{_NO_ANSWER}"""

ROTA = f"""{_HEAD}
    added, _, _ = models.changed_records("phone.GlobalTextMessage")
    with test("{ONLY_MESSAGES}"):
        test.case(changed, "==", {{"phone.GlobalTextMessage", "phone.UserTextMessage"}})
    with test("{MESSAGES_RIGHT}"):
        sent = sorted([own.receiver.phone_number, own.message] for own in added)
        test.case(sent, "==", private_data.messages)
{_ANSWERED}"""
