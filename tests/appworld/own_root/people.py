"""The people of the own root: three supervisors, each with an account in every app used, and four contacts."""

from dataclasses import dataclass

PASSWORD = "own-root-password"


@dataclass(frozen=True)
class Person:
    """Somebody with an address and a number that nobody can have."""

    first_name: str
    last_name: str
    email: str
    phone_number: str

    @property
    def named(self) -> dict[str, str]:
        return {"first_name": self.first_name, "last_name": self.last_name}

    @property
    def reachable(self) -> dict[str, str]:
        """What a task's specs say of its supervisor."""
        return {**self.named, "email": self.email, "phone_number": self.phone_number}


SUPERVISORS = tuple(
    Person(number, "Supervisor", f"supervisor.{number.lower()}@example.com", f"555000000{n}")
    for n, number in enumerate(("One", "Two", "Three"), start=1)
)
CONTACTS = tuple(
    Person("Contact", letter, f"contact.{letter.lower()}@example.com", f"555000010{n}")
    for n, letter in enumerate("ABCD", start=1)
)
