set pagination off
break tenure::kafka::Reader::judge
commands
silent
printf "judge answered %d\n", $rsi & 0xff
continue
end
break tenure::kafka::RoleMachine::serve_observer
commands
silent
printf "serve_observer\n"
continue
end
continue
