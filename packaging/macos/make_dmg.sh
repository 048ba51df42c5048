#!/bin/sh
# Makes the disk image: the app and a link to Applications.
#
#   packaging/macos/make_dmg.sh dist/GrowBox.app dist/growbox-0.1.0-macos-arm64-light.dmg
set -eu

app=$1
image=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# ditto keeps the links and attributes that a signature covers.
ditto "$app" "$folder/GrowBox.app"
ln -s /Applications "$folder/Applications"
rm -f "$image"
# ULFO (LZFSE) is quick; the models do not compress anyway.
hdiutil create -volname GrowBox -srcfolder "$folder" -fs HFS+ -format ULFO -ov "$image"
hdiutil verify "$image"
