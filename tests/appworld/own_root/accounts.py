"""What stands in the supervisors' accounts: the same for each of them, except where a task needs otherwise."""

from typing import Any

from own_root.people import CONTACTS, PASSWORD, SUPERVISORS

APPS = ("phone", "simple_note", "todoist")
ALARMS = tuple(f"own alarm {n}" for n in range(1, 8))
TAGGED = (7, 11, 3)
PROJECTS = ("Own house", "Own garden", "Own cellar")
CHORES = tuple((f"own chore {n}", ("high", "medium", "low")[n % 3], n % 4 == 0) for n in range(1, 13))
"""Title, priority, and whether it is completed from the start."""
ROTAS = (
    ("Own rota 1", {"Contact A": "bring water", "Contact B": "bring bread"}),
    (
        "Own rota 2",
        {"Contact B": "open the hall", "Contact C": "close the hall", "Contact D": "count chairs"},
    ),
    ("Own rota 3", {own.first_name + " " + own.last_name: f"take shift {own.last_name}" for own in CONTACTS}),
)


def fill(models: Any) -> None:
    """Creates all rows of the base databases in `models`, a collection of AppWorld's models by app."""
    for number, person in enumerate(SUPERVISORS):
        models.admin.MainUser.create(**person.reachable, birthday="2000-01-01").save()
        _fill_phone(models.phone, person)
        _fill_notes(models.simple_note, number, person)
        _fill_todoist(models.todoist, number, person)
    for person in CONTACTS:
        _phone_user(models.phone, person)


def _phone_user(phone: Any, person: Any) -> int:
    user = phone.User.create(**person.named, phone_number=person.phone_number, password=PASSWORD)
    user.save()
    return int(user.id)


def _fill_phone(phone: Any, person: Any) -> None:
    user_id = _phone_user(phone, person)
    for hour, label in enumerate(ALARMS, start=6):
        phone.Alarm.create(user_id=user_id, time=f"{hour:02}:30", label=label, enabled=True).save()
    for contact in CONTACTS:
        phone.Contact.create(user_id=user_id, **contact.reachable, relationships=["friend"]).save()


def _fill_notes(simple_note: Any, number: int, person: Any) -> None:
    user = simple_note.User.create(**person.named, email=person.email, password=PASSWORD, verified=True)
    user.save()
    for n in range(1, 13):
        tags = [f"own-tag-{number + 1}"] if n <= TAGGED[number] else ["other-tag"]
        note = {"title": f"Own note {n}", "content": f"line {n}", "tags": tags}
        simple_note.Note.create(user_id=user.id, **note, pinned=False).save()
    title, lines = ROTAS[number]
    content = "\n".join(f"{name}: {duty}" for name, duty in lines.items())
    simple_note.Note.create(user_id=user.id, title=title, content=content, pinned=False).save()


def _fill_todoist(todoist: Any, number: int, person: Any) -> None:
    user = todoist.User.create(**person.named, email=person.email, password=PASSWORD, verified=True)
    user.save()
    for name in ("Own inbox", PROJECTS[number]):
        project = todoist.Project.create(user_id=user.id, name=name)
        project.save()
        todoist.ProjectCollaboratorLink.create(project_id=project.id, user_id=user.id).save()
        for order, (title, priority, done) in enumerate(CHORES):
            todoist.Task.create(
                project_id=project.id,
                user_id=user.id,
                title=f"{title}",
                priority=priority,
                is_completed=done,
                order_index=order,
            ).save()
