#!/bin/sh
# Signs the app with a Developer ID, makes the disk image, has Apple notarise it and fastens the ticket to it.
#
#   packaging/macos/sign_and_notarise.sh dist/GrowBox.app dist/growbox-0.1.0-macos-arm64-light.dmg
#
# GROWBOX_CODESIGN_IDENTITY   "Developer ID Application: NAME (TEAM)", in the keychain; without it: signed ad hoc, not notarised
# GROWBOX_NOTARY_KEY          file of an App Store Connect API key (.p8)
# GROWBOX_NOTARY_KEY_ID       its id
# GROWBOX_NOTARY_ISSUER       its issuer
set -eu

app=$1
image=$2
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
identity=${GROWBOX_CODESIGN_IDENTITY:--}

sign() {
    if [ "$identity" = - ]; then
        codesign --force --sign - "$@"
    else
        codesign --force --timestamp --options runtime --sign "$identity" "$@"
    fi
}

# PyInstaller has signed every library and program with the same identity. The models came after that: the bundle's seal is made
# anew, and only the seal.
sign --entitlements "$here/entitlements.plist" "$app"
codesign --verify --deep --strict --verbose=2 "$app"

"$here/make_dmg.sh" "$app" "$image"
if [ "$identity" = - ]; then
    echo "Signed ad hoc and not notarised: macOS opens it only after its user allows it in Privacy & Security."
    exit 0
fi
codesign --force --timestamp --sign "$identity" "$image"
xcrun notarytool submit "$image" --wait \
    --key "$GROWBOX_NOTARY_KEY" --key-id "$GROWBOX_NOTARY_KEY_ID" --issuer "$GROWBOX_NOTARY_ISSUER"
xcrun stapler staple "$image"
spctl --assess --type open --context context:primary-signature --verbose=2 "$image"
