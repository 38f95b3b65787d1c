"""``models``: the servers of models on this machine, and what the endpoint of the environment offers.

Asks servers, and starts nothing.
"""

from __future__ import annotations

import click

from sessions_lib.cli import options, printing


@click.command("models")
@options.as_json
@options.folder
def models(json: bool, folder: str | None) -> None:
    """Find the models of this machine and of your endpoint.

    Ollama, LM Studio, llama.cpp and vLLM are asked where they usually listen, and the server of OPENAI_BASE_URL. Those
    that answered in your sessions are marked.

    Example: forkbook models
    """
    from sessions_lib.agent import providers
    from sessions_lib.errors import SessionError

    found = {
        (url, model): providers.ends_on(model) for url, listed in providers.find_local().items() for model in listed
    }
    where = providers.choose()
    if not where.is_demo and where.base_url not in {url for url, _ in found} and not where.lacks_key:
        try:
            named = {(where.settings["base_url"], one): providers.ends_on(one) for one in providers.list_models(where)}
        except SessionError as error:
            printing.talk(str(error))
        else:
            found = {**named, **found}
    used = set(options.manager(folder).catalog.models())
    for (url, model), day in found.items() if json else ():
        printing.record({"base_url": url, "model": model, "ends_on": day, "is_used": model in used})
    if found and not json:
        rows = [
            (model, url, ", ".join(filter(None, ["used here" if model in used else "", f"ends {day}" if day else ""])))
            for (url, model), day in found.items()
        ]
        printing.table(("MODEL", "ADDRESS", "NOTE"), rows, cut=(0, 1))
    printing.talk(f"{printing.count(len(found), 'model')}. To use one: forkbook chat --base-url ADDRESS --model MODEL")
