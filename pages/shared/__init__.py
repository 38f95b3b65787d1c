"""Drawing that the pages share: the frame, safe Markdown, a turn, pickers, provider settings, the two components."""
