"""The kinds of Codex's records, items and events that are known, by what becomes of them.

What is in none of these lists is looked into: see ``items``.
"""

from __future__ import annotations

ROOT = "/root"  # the path of the agent that a person talks to
CALLS = ("function_call", "custom_tool_call", "local_shell_call")
RESULTS = ("function_call_output", "custom_tool_call_output", "local_shell_call_output")
ON_ITS_OWN = ("web_search_call", "image_generation_call", "tool_search_call", "tool_search_output")
SILENT_ITEMS = ("ghost_snapshot", "compaction", "compaction_summary", "compaction_trigger", "context_compaction")
SILENT_RECORDS = ("session_meta", "turn_context", "world_state", "inter_agent_communication_metadata", "session_state")
# What the screen shows of an operation; the items of the model's history have its call and its result.
ENDS = ("exec_command_end", "patch_apply_end", "mcp_tool_call_end", "dynamic_tool_call_response")
OPERATIONS = frozenset(
    {"CommandExecution", "FileChange", "McpToolCall", "DynamicToolCall", "CollabAgentToolCall", "WebSearch"}
    | {"ImageView", "ImageGeneration", "Extension", "Sleep", "SubAgentActivity"}
)
SILENT_EVENTS = frozenset(
    {"task_started", "turn_started", "thread_settings_applied", "thread_goal_updated", "session_configured", "warning"}
    | {"background_event", "context_compacted", "turn_diff", "plan_update", "plan_delta", "shutdown_complete", "error"}
    | {"stream_error", "entered_review_mode", "exited_review_mode", "sub_agent_activity", "view_image_tool_call"}
    | {"deprecation_notice", "model_reroute", "undo_started", "undo_completed", "raw_response_item", "item_started"}
    | {"skill_started", "request_user_input", "elicitation_request", "apply_patch_approval_request", "web_search_end"}
    | {"exec_approval_request", "guardian_assessment", "agent_reasoning_section_break", "image_generation_end"}
)
SILENT_ENDINGS = ("_begin", "_delta", "_update", "_updated", "_spawn_end", "_waiting_end", "_close_end", "_resume_end")
