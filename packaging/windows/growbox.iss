; The Windows installer, for Inno Setup 6.3 or newer: per user, without administrator rights.
; Encoding: UTF-8 with a byte order mark, which Inno Setup needs to read Chinese.
;
;   ISCC /DVersion=0.1.0 /DFlavour=light /DApp=dist\GrowBox /DIcon=build\icons\growbox.ico packaging\windows\growbox.iss
;
; Paths that are not absolute count from the repository's root. The user's memory lies in %LOCALAPPDATA%\GrowBox, the program in
; %LOCALAPPDATA%\Programs\GrowBox: nothing here may ever touch the former.

#ifndef Version
  #error Say which version: /DVersion=0.1.0
#endif
#ifndef Flavour
  #define Flavour "light"
#endif
#ifndef App
  #define App "dist\GrowBox"
#endif
#ifndef Icon
  #define Icon "build\icons\growbox.ico"
#endif

[Setup]
AppId={{6C1C7C0E-6D0F-4B0B-9C57-2D1B8A4F5E31}
AppName=GrowBox
AppVersion={#Version}
AppVerName=GrowBox {#Version}
AppPublisher=GrowBox contributors
SourceDir=..\..
OutputDir=dist
OutputBaseFilename=growbox-{#Version}-windows-x86_64-{#Flavour}
SetupIconFile={#Icon}
UninstallDisplayIcon={app}\GrowBox.exe
UninstallDisplayName=GrowBox
PrivilegesRequired=lowest
DefaultDirName={localappdata}\Programs\GrowBox
DisableProgramGroupPage=yes
DisableDirPage=auto
UsePreviousTasks=yes
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
; Qt 6.11 runs on Windows 10 1809 and newer.
MinVersion=10.0.17763
WizardStyle=modern
ShowLanguageDialog=auto
; A running GrowBox is asked to close before its files are replaced.
CloseApplications=yes
RestartApplications=no
Compression=lzma2/normal
SolidCompression=no
LZMAUseSeparateProcess=yes

[Languages]
Name: "english"; MessagesFile: "compiler:Default.isl"
; Our own translation: not every Inno Setup brings one. What it lacks is shown in English.
Name: "chinese"; MessagesFile: "compiler:Default.isl,packaging\windows\ChineseSimplified.isl"

[CustomMessages]
english.DesktopIcon=Create a &desktop icon
english.StartNow=&Start GrowBox
english.IsRunning=GrowBox is running. Please close it, then choose Retry.
english.DataStays=GrowBox has been removed. Your memory and settings are still here:%n%n%1%n%nDelete this folder yourself if you want them gone.
chinese.DesktopIcon=创建桌面图标(&D)
chinese.StartNow=启动 GrowBox(&S)
chinese.IsRunning=GrowBox 正在运行。请先关闭它，再点击“重试”。
chinese.DataStays=GrowBox 已移除。您的记忆和设置仍保留在：%n%n%1%n%n如果不再需要，请自行删除该文件夹。

[Tasks]
Name: "desktopicon"; Description: "{cm:DesktopIcon}"; Flags: unchecked

[InstallDelete]
; Modules of an older version must not stay beside the new ones. Models are replaced by name.
Type: filesandordirs; Name: "{app}\_internal"

[Files]
Source: "{#App}\*"; Excludes: "\models\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs
; Models do not compress.
Source: "{#App}\models\*"; DestDir: "{app}\models"; Flags: ignoreversion nocompression skipifsourcedoesntexist

[Icons]
Name: "{autoprograms}\GrowBox"; Filename: "{app}\GrowBox.exe"; AppUserModelID: "io.github.growbox.GrowBox"
Name: "{autodesktop}\GrowBox"; Filename: "{app}\GrowBox.exe"; AppUserModelID: "io.github.growbox.GrowBox"; Tasks: desktopicon

[Run]
Filename: "{app}\GrowBox.exe"; Description: "{cm:StartNow}"; Flags: nowait postinstall skipifsilent

[Code]
function IsRunning(): Boolean;
var
  Stream: TFileStream;
begin
  // Windows lets nobody write to the file of a running program.
  Result := False;
  if not FileExists(ExpandConstant('{app}\GrowBox.exe')) then
    Exit;
  try
    Stream := TFileStream.Create(ExpandConstant('{app}\GrowBox.exe'), fmOpenReadWrite or fmShareExclusive);
    Stream.Free;
  except
    Result := True;
  end;
end;

function InitializeUninstall(): Boolean;
begin
  Result := True;
  while Result and IsRunning() do
    Result := SuppressibleMsgBox(CustomMessage('IsRunning'), mbError, MB_RETRYCANCEL, IDCANCEL) = IDRETRY;
end;

procedure CurUninstallStepChanged(CurUninstallStep: TUninstallStep);
begin
  if (CurUninstallStep = usPostUninstall) and DirExists(ExpandConstant('{localappdata}\GrowBox')) then
    SuppressibleMsgBox(FmtMessage(CustomMessage('DataStays'), [ExpandConstant('{localappdata}\GrowBox')]), mbInformation, MB_OK, IDOK);
end;
