"""Writes docs/configuration.md from the tables of config names, or says that it is out of date (--check)."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from oncelog.broker.config_ignored import IGNORED  # noqa: E402
from oncelog.broker.config_setting import Setting, TopicSetting  # noqa: E402
from oncelog.broker.config_topics import TOPIC_CONFIGS  # noqa: E402
from oncelog.broker.config_used import DEVIATIONS, USED  # noqa: E402

TARGET = ROOT / "docs" / "configuration.md"

OPENING = """\
# Configuration

<!-- Written by tools/configuration_doc.py (`make docs`) from the tables in src/oncelog/broker/config_*.py. -->

Names, types, ranges and defaults are those of Apache Kafka 4.3, so a `server.properties` carries over:

    oncelog serve --config server.properties --set num.partitions=3 --data-dir data

`--set` wins over the file, `--listen`, `--advertised` and `--data-dir` win over both. The same names go into
`oncelog.embedded(config={"num.partitions": 3})`. What happens to a name:

- it does something here: the tables below;
- Kafka knows it, and it has no meaning here: accepted, checked for type and range, logged as ignored with the reason;
- Kafka does not know it, or the value is none: the broker does not start, and says which name and what is near.

A topic's own configs are set with CreateTopics, AlterConfigs and IncrementalAlterConfigs, by any client's admin calls.
"""


def main() -> int:
    text = document()
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text)
        return 0
    if TARGET.exists() and TARGET.read_text() == text:
        return 0
    print("docs/configuration.md does not agree with the tables in the code: run `make docs`", file=sys.stderr)
    return 1


def document() -> str:
    parts = [OPENING, "\n## Defaults that differ from Kafka's\n\n| name | Kafka | here | why |\n|---|---|---|---|\n"]
    used = {setting.name: setting for group in USED.values() for setting in group}
    for name, (kafka_default, why) in DEVIATIONS.items():
        parts.append(f"| `{name}` | {_code(kafka_default)} | {_code(used[name].default)} | {why} |\n")

    parts.append("\n## Broker configs\n")
    for subject, settings in USED.items():
        parts.append(f"\n### {subject}\n\n| name | default | values | what it does |\n|---|---|---|---|\n")
        parts.extend(_row(setting) for setting in settings)

    parts.append("\n## Topic configs\n\n| name | default from | values | what it does |\n|---|---|---|---|\n")
    for topic_setting in TOPIC_CONFIGS.values():
        if topic_setting.meaning:
            source = ", ".join(f"`{name}`" for name, _ in topic_setting.broker_names) or _code(topic_setting.default)
            parts.append(
                f"| `{topic_setting.name}` | {source} | {_values(topic_setting)} | {topic_setting.meaning} |\n"
            )
    without = ", ".join(f"`{setting.name}`" for setting in TOPIC_CONFIGS.values() if not setting.meaning)
    parts.append(f"\nAccepted and kept, without effect: {without}.\n")

    parts.append("\n## Broker configs that are accepted and ignored\n")
    for why, settings in sorted(IGNORED.items(), key=lambda entry: entry[0].lower()):
        names = ", ".join(f"`{setting.name}`" for setting in settings)
        parts.append(f"\n**{why[0].upper()}{why[1:]}:** {names}.\n")
    return "".join(parts)


def _row(setting: Setting) -> str:
    return f"| `{setting.name}` | {_code(setting.default)} | {_values(setting)} | {setting.meaning} |\n"


def _values(setting: Setting | TopicSetting) -> str:
    kind = setting.type.name.lower()
    if not setting.valid:
        return kind
    if ".." in setting.valid:
        exception, bar, bounds = setting.valid.rpartition("|")
        low, high = bounds.split("..")
        words = f"{kind}, {low} to {high}" if high else f"{kind}, at least {low}"
        return f"{words}, or {exception}" if bar else words
    return ("list of " if kind == "list" else "") + setting.valid.lstrip("~").replace("|", ", ")


def _code(text: str | None) -> str:
    return "none" if text is None else f"`{text}`" if text else "empty"


if __name__ == "__main__":
    sys.exit(main())
