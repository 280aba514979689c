#!/usr/bin/env escript
%% Records what a supervisor of Erlang/OTP does, as the transcripts in this folder:
%%
%%     escript record.escript FOLDER
%%
%% A group has the children a, b and c. Each logs that it starts, and that its
%% supervisor stops it.
-mode(compile).
-export([init/1]).

main([Folder]) ->
    process_flag(trap_exit, true),
    logger:set_primary_config(level, none),
    [record(Folder, Strategy, Type) || Strategy <- strategies(), Type <- [permanent, transient, temporary]],
    [others(Folder, Strategy) || Strategy <- strategies()],
    rand:seed(exsss, 1),
    [story(Folder, [name(Strategy), "-at-random"], [random(Strategy) || _ <- lists:seq(1, 50)]) || Strategy <- strategies()].

strategies() -> [one_for_one, one_for_all, rest_for_one].

%% Records what happens to b and to the others for each way in which b can end, and when
%% b is stopped because a failed.
record(Folder, Strategy, Type) ->
    Types = [permanent, Type, permanent],
    story(Folder, [name(Strategy), "-", name(Type)],
          [{Strategy, Types, 9, [Step]} || Step <- [{b, ends}, {b, fails}, {b, panics}, {b, hangs}, {a, fails}]]).

others(Folder, Strategy) ->
    story(Folder, [name(Strategy), "-others"],
          [{Strategy, [permanent, permanent, Type], 9, [{c, ends}, {b, fails}, {b, fails}]}
           || Type <- [transient, temporary]] ++
          [{Strategy, [Type, permanent, permanent], 9, [{b, fails}, {a, fails}, {c, fails}]}
           || Type <- [transient, temporary]] ++
          [{Strategy, [permanent, permanent, permanent], 9, [{X, 'does not start', 1}, {Y, fails}]}
           || X <- [a, b, c], Y <- [a, b, c]] ++
          [{Strategy, [permanent, permanent, transient], 9, [{c, ends}, {c, 'does not start', 2}, {a, fails}]},
           {Strategy, [permanent, permanent, permanent], 2, [{b, 'does not start', 1}, {b, fails}, {c, fails}]},
           {Strategy, [permanent, permanent, permanent], 2, [{a, 'does not start', 3}, {a, fails}]},
           {Strategy, [permanent, transient, temporary], 0, [{b, ends}, {c, fails}, {a, ends}]},
           {Strategy, [permanent, permanent, permanent], 1, [{b, fails}, {c, fails}]}]).

random(Strategy) ->
    {Strategy, [any([permanent, transient, temporary]) || _ <- [a, b, c]], 3 + rand:uniform(7),
     [case rand:uniform(4) of
          1 -> {any([a, b, c]), 'does not start', rand:uniform(2)};
          _ -> {any([a, b, c]), any([ends, fails, panics, hangs])}
      end || _ <- lists:seq(1, 8)]}.

any(List) -> lists:nth(rand:uniform(length(List)), List).

story(Folder, Name, Scenes) ->
    Head = ["# Recorded by record.escript with Erlang/OTP ", erlang:system_info(otp_release), ".\n"],
    File = filename:join(Folder, lists:flatten([Name, ".txt"])),
    ok = file:write_file(File, [Head | [["\n" | scene(S)] || S <- Scenes]]).

scene({Strategy, Types, Intensity, Steps}) ->
    ets:new(log, [named_table, public, ordered_set]),
    ets:new(refusals, [named_table, public]),
    Specs = [#{id => Id, start => {erlang, apply, [fun start/1, [Id]]}, restart => Type}
             || {Id, Type} <- lists:zip([a, b, c], Types)],
    {ok, Sup} = supervisor_of(#{strategy => Strategy, intensity => Intensity, period => 3600}, Specs),
    taken(),
    Text = [io_lib:format("group ~s intensity=~b ~s\n",
                          [name(Strategy), Intensity, lists:join(" ", [name(T) || T <- Types])])
            | [step(Sup, S) || S <- Steps]],
    unlink(Sup),
    exit(Sup, kill),
    timer:sleep(10),
    ets:delete(log),
    ets:delete(refusals),
    Text.

step(_, {Id, 'does not start', Times}) ->
    ets:insert(refusals, {Id, Times}),
    io_lib:format("~s does not start ~b\n", [Id, Times]);
step(Sup, {Id, How}) ->
    Lines = case is_process_alive(Sup) andalso lists:keyfind(Id, 1, supervisor:which_children(Sup)) of
                {Id, Pid, _, _} when is_pid(Pid) -> exits(Pid, How), outcome(Sup);
                _ -> ["it does not run"]
            end,
    [io_lib:format("~s ~s\n", [Id, How]) | ["  " ++ L ++ "\n" || L <- Lines]].

exits(Pid, hangs) -> exit(Pid, kill), timer:sleep(20);
exits(Pid, How) -> Pid ! How, timer:sleep(20).

outcome(Sup) ->
    case is_process_alive(Sup) of
        false -> taken(), ["the supervisor ends"];
        true ->
            [supervisor:which_children(Sup) || _ <- lists:seq(1, 10)], % each lets it try a start again
            Alive = lists:sort([atom_to_list(Id) || {Id, Pid, _, _} <- supervisor:which_children(Sup), is_pid(Pid)]),
            taken() ++ [lists:flatten(["running: ", lists:join(" ", Alive)])]
    end.

supervisor_of(Flags, Specs) ->
    supervisor:start_link(?MODULE, {Flags, Specs}).

%% The child.

start(Id) ->
    case ets:lookup(refusals, Id) of
        [{Id, N}] when N > 0 ->
            ets:insert(refusals, {Id, N - 1}),
            log("start ~s, which fails", Id),
            {error, refused};
        _ ->
            log("start ~s", Id),
            Sup = self(),
            Pid = spawn_link(fun() -> process_flag(trap_exit, true), Sup ! {ready, Id}, child(Id, Sup) end),
            receive {ready, Id} -> {ok, Pid} end
    end.

child(Id, Sup) ->
    receive
        ends -> ok;
        fails -> exit(it_failed);
        panics -> error(badarg);
        {'EXIT', Sup, shutdown} -> log("stop ~s", Id), exit(shutdown)
    end.

log(Format, Id) ->
    ets:insert(log, {erlang:unique_integer([monotonic]), lists:flatten(io_lib:format(Format, [Id]))}).

taken() ->
    Lines = [L || {_, L} <- ets:tab2list(log)],
    ets:delete_all_objects(log),
    Lines.

name(Atom) -> string:replace(atom_to_list(Atom), "_", "-", all).

init(Arg) -> {ok, Arg}.
