"""Telegram for tests: lo-bot-api-emulator with what teloxide and the tests need beside. telegram_emulator.py JOURNAL

Method names are matched without regard to case, as api.telegram.org does; getMe answers every field that is required.
POST /__fault {"mode": "flood" | "still" | "away" | "topicless" | "lost" | "early" | "stranger" | "none", "after": messages}: answers 429 with retry_after, perhaps
to all but the first so many messages, or to edits, or none at all, or knows no topic, or brings updates of any kind, as of what happened before a bot
said which it wants, until told otherwise, or knows no bot by the token; "lost" takes the next message and hangs up.
POST /__file {"id": …, "data": base64, or "zeros": how many, "held": whether}: what the emulator gives to whoever fetches that file; while
it is held, whoever fetches it waits.
GET /__said: what was asked of it and done, each with its parameters and its second, in order; `offset` is the update that is asked for
next, `brought` lists the updates that were brought to whoever asked, each with how often, `rivals` is how often somebody asked while
somebody else did.
"""
import asyncio
import base64
import json
import socket
import sys
import time
from pathlib import Path

import lo_bot_api_emulator as lo
from aiohttp import web
from lo_bot_api_emulator import updates

ME = {
    "id": 7, "is_bot": True, "first_name": "Ropewalk", "username": "ropewalk_bot", "can_join_groups": True,
    "can_read_all_group_messages": False, "supports_inline_queries": False, "can_connect_to_business": False,
    "has_main_web_app": False, "has_topics_enabled": False,
}
FLOOD = {
    "ok": False, "error_code": 429, "description": "Too Many Requests: retry after 1",
    "parameters": {"retry_after": 1},
}
NO_BOT = {"ok": False, "error_code": 401, "description": "Unauthorized"}
NO_TOPIC = {"ok": False, "error_code": 400, "description": "Bad Request: message thread not found"}

# Of the Bot API, but not yet of the emulator.
for method in ("sendMessage", "editMessageText"):
    lo.CONTRACT["methods"][method]["parameters"].append("link_preview_options")
lo.CONTRACT["methods"]["sendMessage"]["parameters"].append("message_thread_id")
updates.KINDS.update({"edited_message", "channel_post", "edited_channel_post"})
wanted = updates.allowed_updates
updates.allowed_updates = lambda kinds: [] if fault["mode"] == "early" else wanted(kinds)


class Emulator(lo.LoBotApiEmulator):
    @classmethod
    def validate_markup(cls, markup, *, private_chat=True):
        if markup != {"force_reply": True}:
            super().validate_markup(markup, private_chat=private_chat)


emulator = Emulator(journal=Path(sys.argv[1]), enable_control=True, allow_insecure_loopback_webhooks=True)
names = {name.lower(): name for name in lo.CONTRACT["methods"]}
answer = emulator.handle
fault = {"mode": "none", "after": 0, "met": 0, "refused": 0}
said = []
asked_from = {"offset": 0, "rivals": 0}
brought = {}
let_go = {}


async def faulty(request):
    method = request.match_info["method"].lower()
    if fault["mode"] != "none":
        fault["met"] += 1
    if fault["mode"] == "away":
        request.transport.close()
        raise web.HTTPServiceUnavailable()
    if fault["mode"] == "stranger":
        fault["refused"] += 1
        return web.json_response(NO_BOT, status=401)
    if fault["mode"] == "flood" and method == "sendmessage":
        if fault["after"] == 0:
            fault["refused"] += 1
            return web.json_response(FLOOD, status=429)
        fault["after"] -= 1
    if fault["mode"] == "still" and method == "editmessagetext":
        fault["refused"] += 1
        return web.json_response(FLOOD, status=429)
    if method == "getme":
        return web.json_response({"ok": True, "result": ME})
    request.match_info["method"] = names.get(method, request.match_info["method"])
    # What may hold a file comes in parts, which only the emulator reads.
    parameters = await request.json() if request.can_read_body and request.content_type == "application/json" else {}
    if fault["mode"] == "topicless" and "message_thread_id" in parameters:
        fault["refused"] += 1
        return web.json_response(NO_TOPIC, status=400)
    if method == "getupdates":
        asked_from["offset"] = parameters.get("offset", 0)
    if method == "getfile" and parameters.get("file_id") in let_go:
        await let_go[parameters["file_id"]].wait()
    response = await answer(request)
    if fault["mode"] == "away" and method == "getupdates":
        # Who has waited for news since before it went away hears none either.
        request.transport.close()
        raise web.HTTPServiceUnavailable()
    if method == "getupdates":
        asked_from["rivals"] += response.status == 409
        for update in json.loads(response.text).get("result", []):
            brought[update["update_id"]] = brought.get(update["update_id"], 0) + 1
    if method != "getupdates" and response.status == 200:
        said.append({"method": method, "parameters": parameters, "result": json.loads(response.text)["result"], "at": time.monotonic()})
    if fault["mode"] == "lost" and method == "sendmessage":
        fault["mode"] = "none"
        request.transport.close()
    return response


async def tell(_request):
    counts = {"brought": sorted(brought.items()), "faults": fault["met"], "refused": fault["refused"]}
    return web.json_response({"said": said, **asked_from, **counts})


async def set_fault(request):
    asked = await request.json()
    fault.update(mode=asked["mode"], after=asked.get("after", 0))
    return web.json_response(fault)


async def add_file(request):
    body = await request.json()
    if "held" in body:
        event = let_go.setdefault(body["id"], asyncio.Event())
        event.clear() if body["held"] else event.set()
    if "data" in body or "zeros" in body:
        data = base64.b64decode(body["data"]) if "data" in body else bytes(body["zeros"])
        emulator.assets[body["id"]] = {"data": data}
    return web.json_response({"ok": True})


emulator.handle = faulty
app = emulator.app()
app.router.add_post("/__fault", set_fault)
app.router.add_post("/__file", add_file)
app.router.add_get("/__said", tell)
listener = socket.create_server(("127.0.0.1", 0))
print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
web.run_app(app, sock=listener, access_log=None, print=None)
