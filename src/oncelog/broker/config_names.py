"""Every broker and topic config name that Kafka 4.3 knows, and Oncelog's few own, in one place to look them up.

The tables themselves are in `config_used` (names that do something here), `config_ignored` (names that do not, and why) and
`config_topics`. They hold constants only, so that loading them costs a start about a millisecond.
"""

from collections.abc import Iterable

from oncelog.broker.config_ignored import IGNORED
from oncelog.broker.config_setting import Setting
from oncelog.broker.config_topics import TOPIC_CONFIGS as TOPIC_CONFIGS
from oncelog.broker.config_used import USED

#: Names that do something, in the order of the documentation.
USED_CONFIGS: dict[str, Setting] = {setting.name: setting for group in USED.values() for setting in group}

BROKER_CONFIGS: dict[str, Setting] = {
    **USED_CONFIGS,
    **{setting.name: setting for group in IGNORED.values() for setting in group},
}

#: Configs of one listener or of a plug-in: their rest is free, so they are known by how they begin.
_IGNORED_PREFIXES = ("listener.name.", "rsm.config.", "rlmm.config.", "config.providers.")


def is_ignored(name: str) -> bool:
    """Whether Kafka knows the name and Oncelog does nothing with it."""
    return (name in BROKER_CONFIGS and name not in USED_CONFIGS) or name.startswith(_IGNORED_PREFIXES)


def why_ignored(name: str) -> str:
    for why, settings in IGNORED.items():
        if any(setting.name == name for setting in settings):
            return why
    return "no listener or plug-in of Kafka's is loaded here"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest known name as the end of a sentence, or nothing where none is near."""
    import difflib  # only a mistake pays for it

    near = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
    return f": did you mean {near[0]}?" if near else ""
