"""Run as a program of its own, with Anki's package beside it: the app that the file belongs to.

anki_collection.py FOLDER make FILE         a collection of some notes, cards and reviews
anki_collection.py FOLDER downgrade FILE    to the schema that decks are shared in
anki_collection.py FOLDER study FILE WORD   opens it, adds notes, edits some, deletes one, answers cards
anki_collection.py FOLDER check FILE        as Anki's own "Check Database"
"""

from __future__ import annotations

import sys
from typing import Any

NOTES = 300
ANSWERS = 20


def add(collection: Any, word: str, count: int) -> None:
    basic, deck = collection.models.by_name("Basic"), collection.decks.id("Deutsch")
    for n in range(count):
        note = collection.new_note(basic)
        note["Front"], note["Back"], note.tags = f"{word} {n}", f"<b>{word}</b> {n} ü 名", [f"tag{n % 7}", word]
        collection.add_note(note, deck)
    collection.decks.select(deck)


def answer(collection: Any, count: int) -> None:
    for _ in range(count):
        card = collection.sched.getCard()
        if card is None:
            return
        card.start_timer()
        collection.sched.answerCard(card, 3)


def main(folder: str, act: str, path: str, word: str = "Wort") -> None:
    sys.path.insert(0, folder)
    from anki.collection import Collection  # type: ignore[import-not-found]

    collection = Collection(path)
    if act == "make":
        add(collection, word, NOTES)
        answer(collection, ANSWERS)
    elif act == "study":
        add(collection, word, 25)
        notes = list(collection.find_notes("Wort"))
        for number in notes[:10]:
            note = collection.get_note(number)
            note["Back"] = f"{word}: {note['Back']}"
            collection.update_note(note)
        collection.remove_notes(notes[-2:])
        answer(collection, 5)
    if act in ("make", "study"):
        # Anki itself now and then leaves an answered card without the time of its last review (1 of 120 collections),
        # and its check puts that right: what a later check finds is not Anki's.
        collection.fix_integrity()
    elif act == "check":
        report, fine = collection.fix_integrity()
        print(report)
        if not fine:
            sys.exit(1)
    collection.close(downgrade=act == "downgrade")


if __name__ == "__main__":
    main(*sys.argv[1:])
