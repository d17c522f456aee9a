"""The own tasks: four scenarios with three tasks each, of difficulty 1, 1, 2 and 3, over three apps."""

from own_root import evaluations as ev
from own_root.accounts import ALARMS, CHORES, PROJECTS, ROTAS, TAGGED
from own_root.people import CONTACTS, SUPERVISORS
from own_root.task import OwnTask, log_in

COMPLETE = "apis.supervisor.complete_task()"


def alarm_off(n: int) -> OwnTask:
    """State: one alarm of many is switched off."""
    label = ALARMS[2 * n]
    return OwnTask(
        id=f"alarmoff_{n + 1}",
        difficulty=1,
        supervisor=SUPERVISORS[n],
        apps=("phone",),
        instruction=f'Switch off the alarm that I have labelled "{label}" and leave the others as they are.',
        evaluation=ev.ALARM,
        requirements={ev.ONE_ALARM: False, ev.ALARM_OFF: False, ev.NO_ANSWER: False},
        blocks=(
            log_in("phone"),
            f"""
            alarms = apis.phone.show_alarms(access_token=phone, page_limit=20)
            wanted = next(own for own in alarms if own["label"] == {label!r})
            print(wanted)
            """,
            'apis.phone.update_alarm(access_token=phone, alarm_id=wanted["alarm_id"], enabled=False)',
            COMPLETE,
        ),
        commit=2,
        private={"label": label},
    )


def tag_count(n: int) -> OwnTask:
    """Answer: a count over more notes than one page shows."""
    tag, count = f"own-tag-{n + 1}", TAGGED[n]
    return OwnTask(
        id=f"tagcount_{n + 1}",
        difficulty=1,
        supervisor=SUPERVISORS[n],
        apps=("simple_note",),
        instruction=f'How many of my notes bear the tag "{tag}"? Give me the number.',
        evaluation=ev.TAGS,
        requirements={ev.ANSWERED: False, ev.NOTHING_ELSE: True},
        blocks=(
            log_in("simple_note"),
            f"""
            found, page = [], 0
            while True:
                notes = apis.simple_note.search_notes(
                    access_token=simple_note, tags=[{tag!r}], page_index=page, page_limit=5
                )
                if not notes:
                    break
                found, page = found + notes, page + 1
            print(len(found))
            """,
            "apis.supervisor.complete_task(answer=len(found))",
        ),
        commit=2,
        answer=count,
    )


def chores(n: int) -> OwnTask:
    """State: some of a project's tasks, picked by two fields."""
    project, priority = PROJECTS[n], ("high", "medium", "low")[n]
    titles = sorted(title for title, its_priority, done in CHORES if its_priority == priority and not done)
    return OwnTask(
        id=f"chores_{n + 1}",
        difficulty=2,
        supervisor=SUPERVISORS[n],
        apps=("todoist",),
        instruction=f'Mark each open task of {priority} priority in my project "{project}" as completed.',
        evaluation=ev.CHORES,
        requirements={ev.ONLY_TASKS: False, ev.CHORES_DONE: False, ev.NO_ANSWER: False},
        blocks=(
            log_in("todoist"),
            f"""
            projects = apis.todoist.show_projects(access_token=todoist, page_limit=20)
            project = next(own for own in projects if own["name"] == {project!r})
            """,
            f"""
            listed = apis.todoist.show_tasks(
                access_token=todoist, project_id=project["project_id"], priority={priority!r}, is_completed=False
            )
            due = listed["no_section_tasks"]
            print(due)
            """,
            """
            for own in due:
                apis.todoist.update_task(access_token=todoist, task_id=own["task_id"], is_completed=True)
            """,
            COMPLETE,
        ),
        commit=3,
        private={"titles": titles},
    )


def rota(n: int) -> OwnTask:
    """State in one app from a text in another, and an answer."""
    title, lines = ROTAS[n]
    numbers = {f"{own.first_name} {own.last_name}": own.phone_number for own in CONTACTS}
    return OwnTask(
        id=f"rota_{n + 1}",
        difficulty=3,
        supervisor=SUPERVISORS[n],
        apps=("simple_note", "phone"),
        instruction=(
            f'My note "{title}" has a line "name: duty" for each of several people in my phone\'s contacts. '
            "Send each of them a text message with their duty, worded as in the note, and tell me how many "
            "messages you sent."
        ),
        evaluation=ev.ROTA,
        requirements={ev.ONLY_MESSAGES: False, ev.MESSAGES_RIGHT: False, ev.ANSWERED: False},
        blocks=(
            log_in("simple_note", "phone"),
            f"""
            notes = apis.simple_note.search_notes(access_token=simple_note, query={title!r}, page_limit=20)
            note_id = next(own["note_id"] for own in notes if own["title"] == {title!r})
            text = apis.simple_note.show_note(access_token=simple_note, note_id=note_id)["content"]
            print(text)
            """,
            """
            people = apis.phone.search_contacts(access_token=phone, page_limit=20)
            numbers = {own["first_name"] + " " + own["last_name"]: own["phone_number"] for own in people}
            duties = dict(line.split(": ", 1) for line in text.splitlines())
            """,
            """
            for name, duty in duties.items():
                apis.phone.send_text_message(access_token=phone, phone_number=numbers[name], message=duty)
            """,
            "apis.supervisor.complete_task(answer=len(duties))",
        ),
        commit=4,
        answer=len(lines),
        private={"messages": sorted([numbers[name], duty] for name, duty in lines.items())},
    )


TASKS = tuple(make(n) for make in (alarm_off, tag_count, chores, rota) for n in range(len(SUPERVISORS)))
