# A small form: `wish contacts.tcl FOLDER`. What is saved goes to FOLDER/saved, where its parts are to FOLDER/parts.
set folder [lindex $argv 0]
wm title . Contacts
wm geometry . 460x300+0+0
option add *font {Helvetica -16}
set city {}
set news 0
label .head -text "New contact" -font {Helvetica -20 bold}
label .namelabel -text "Name"
entry .name -width 26
label .citylabel -text "City"
entry .city -width 26
checkbutton .news -text "Send newsletter" -variable news
button .save -text "Save" -width 8 -command save
button .clear -text "Clear" -width 8 -command clear
label .status -text ""
place .head -x 24 -y 16
place .namelabel -x 24 -y 70
place .name -x 120 -y 66
place .citylabel -x 24 -y 114
place .city -x 120 -y 110
place .news -x 116 -y 152
place .save -x 120 -y 200
place .clear -x 260 -y 200
place .status -x 24 -y 260
proc save {} {
  global folder news
  set out [open $folder/saved w]
  puts $out "[.name get]|[.city get]|$news"
  close $out
  .status configure -text "Saved"
}
proc clear {} {
  global news
  .name delete 0 end
  .city delete 0 end
  set news 0
  .status configure -text "Cleared"
}
proc tell {} {
  global folder news
  set out [open $folder/parts.new w]
  foreach part {.name .city .news .save .clear} {
    set value {}
    if {$part in {.name .city}} { set value [$part get] }
    if {$part eq {.news}} { set value $news }
    puts $out "$part|[winfo rootx $part]|[winfo rooty $part]|[winfo width $part]|[winfo height $part]|[expr {[focus] eq $part}]|$value"
  }
  close $out
  file rename -force $folder/parts.new $folder/parts
  after 60 tell
}
update
tell
