"""What only Chat draws: header, turns, composer, menus."""
