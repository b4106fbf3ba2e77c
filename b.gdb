set pagination off
break tenure::GroupCandidacy::unanswered
commands
silent
printf "unanswered fault %d: %s\n", *(int*)$rdx, *(char**)($rdx+8)
continue
end
continue
