#!/bin/sh
# Adds GrowBox to this user's application menu, from where it lies; `--remove` takes it out again. Neither touches any memory.
# After the folder was moved, run it again.
set -eu

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
share=${XDG_DATA_HOME:-$HOME/.local/share}
entry=$share/applications/growbox.desktop
mime=$share/mime/packages/growbox.xml

say() { # English, Chinese
    case ${LC_ALL:-${LC_MESSAGES:-${LANG:-}}} in
    zh*) printf '%s\n' "$2" ;;
    *) printf '%s\n' "$1" ;;
    esac
}

refresh_caches() {
    if command -v update-desktop-database >/dev/null; then
        update-desktop-database -q "$share/applications" || true
    fi
    if command -v update-mime-database >/dev/null && [ -d "$share/mime/packages" ]; then
        update-mime-database "$share/mime" || true
    fi
}

# Two levels of escaping: that of every string in a desktop entry (\ as \\), and inside it that of a quoted word of Exec
# (\ " ` $ with a backslash before each, % doubled).
as_string() { printf '%s' "$1" | sed 's/\\/\\\\/g'; }
as_exec_word() {
    word=$(printf '%s' "$1" | sed -e 's/[\\"`$]/\\&/g' -e 's/%/%%/g')
    printf '"%s"' "$(as_string "$word")"
}

icons() {
    (cd "$here/share/icons" && find hicolor -type f)
}

remove() {
    rm -f -- "$entry" "$mime"
    icons | while IFS= read -r icon; do rm -f -- "$share/icons/$icon"; done
    refresh_caches
    say "GrowBox is out of the menu. Its folder and your data are untouched." "已从菜单中移除 GrowBox。程序文件夹和您的数据均未改动。"
}

add() {
    newline='
'
    case $here in
    *"$newline"*)
        say "The name of this folder holds a line break; please rename it." "此文件夹的名称含有换行符，请先改名。" >&2
        exit 1
        ;;
    esac
    mkdir -p -- "$share/applications" "$share/mime/packages"
    {
        grep -v -e '^Exec=' -e '^TryExec=' "$here/share/applications/growbox.desktop"
        printf 'TryExec=%s\n' "$(as_string "$here/GrowBox")"
        printf 'Exec=%s\n' "$(as_exec_word "$here/GrowBox")"
    } >"$entry.new"
    mv -f -- "$entry.new" "$entry"
    cp -f -- "$here/share/mime/packages/growbox.xml" "$mime"
    icons | while IFS= read -r icon; do
        mkdir -p -- "$share/icons/${icon%/*}"
        cp -f -- "$here/share/icons/$icon" "$share/icons/$icon"
    done
    refresh_caches
    say "GrowBox is in the menu. To take it out: install-menu-entry.sh --remove" "已将 GrowBox 加入菜单。如需移除，请运行 install-menu-entry.sh --remove"
}

case ${1:-} in
"") add ;;
--remove) remove ;;
*)
    say "Usage: install-menu-entry.sh [--remove]" "用法：install-menu-entry.sh [--remove]" >&2
    exit 2
    ;;
esac
