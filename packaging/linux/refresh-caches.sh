#!/bin/sh
# Runs after installing and after removing: menu, file types and icons are looked up in caches. Nothing here touches a user's data.
set -e
if command -v update-desktop-database >/dev/null; then
    update-desktop-database -q /usr/share/applications || true
fi
if command -v update-mime-database >/dev/null && [ -d /usr/share/mime ]; then
    update-mime-database /usr/share/mime || true
fi
if command -v gtk-update-icon-cache >/dev/null && [ -d /usr/share/icons/hicolor ]; then
    gtk-update-icon-cache -q -f -t /usr/share/icons/hicolor || true
fi
