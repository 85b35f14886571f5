// Said by redis-server 7.0.15 (Debian 12), recorded from its socket.

extension RecordedReply {
    static let servers: [RecordedReply] = [
        .unsupportedProtocol, .outOfMemory, .busy, .killed, .readOnly, .masterDown, .roleOfLostReplica,
        .forbiddenCommand, .forbiddenKey, .forbiddenChannel, .helloOfSentinel, .primaryAddress, .unknownPrimary,
        .subscribeToSwitch, .roleOfReplica, .switched, .noSlots, .slotsRESP2, .shardsRESP2, .slots, .shards,
        .moved, .crossSlot, .movedSubscription, .ask, .asking, .tryAgain,
    ]

    static let unsupportedProtocol = RecordedReply(
        "HELLO 9",
        """
        -NOPROTO unsupported protocol version
        """)

    static let outOfMemory = RecordedReply(
        "SET k v",
        """
        -OOM command not allowed when used memory > 'maxmemory'.
        """)

    static let busy = RecordedReply(
        "GET x",
        """
        -BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.
        """)

    static let killed = RecordedReply(
        "(the killed EVAL)",
        """
        -ERR Script killed by user with SCRIPT KILL... script: 694a5fe1ddb97a4c6a1bf299d9537c7d3d0f84e7, on \
        @user_script:1.
        """)

    static let readOnly = RecordedReply(
        "SET k v",
        """
        -READONLY You can't write against a read only replica.
        """)

    static let masterDown = RecordedReply(
        "GET k",
        """
        -MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.
        """)

    static let roleOfLostReplica = RecordedReply(
        "ROLE",
        """
        *5
        $5
        slave
        $9
        127.0.0.1
        :1
        $7
        connect
        :-1
        """)

    static let forbiddenCommand = RecordedReply(
        "SET a 1",
        """
        -NOPERM this user has no permissions to run the 'set' command
        """)

    static let forbiddenKey = RecordedReply(
        "GET b",
        """
        -NOPERM this user has no permissions to access one of the keys used as arguments
        """)

    static let forbiddenChannel = RecordedReply(
        "SUBSCRIBE news",
        """
        -NOPERM this user has no permissions to run the 'subscribe' command
        """)

    static let helloOfSentinel = RecordedReply(
        "HELLO 3",
        """
        %6
        $6
        server
        $5
        redis
        $7
        version
        $6
        7.0.15
        $5
        proto
        :3
        $2
        id
        :3
        $4
        mode
        $8
        sentinel
        $7
        modules
        *0
        """)

    static let primaryAddress = RecordedReply(
        "SENTINEL get-master-addr-by-name rooms",
        """
        *2
        $9
        127.0.0.1
        $5
        45511
        """)

    static let unknownPrimary = RecordedReply(
        "SENTINEL get-master-addr-by-name other",
        """
        _
        """)

    static let subscribeToSwitch = RecordedReply(
        "SUBSCRIBE +switch-master",
        """
        >3
        $9
        subscribe
        $14
        +switch-master
        :1
        """)

    static let roleOfReplica = RecordedReply(
        "ROLE of a replica",
        """
        *5
        $5
        slave
        $9
        127.0.0.1
        :45511
        $9
        connected
        :416
        """)

    static let switched = RecordedReply(
        "(+switch-master)",
        """
        >3
        $7
        message
        $14
        +switch-master
        $37
        rooms 127.0.0.1 45511 127.0.0.1 34597
        """)

    static let noSlots = RecordedReply(
        "GET x",
        """
        -CLUSTERDOWN Hash slot not served
        """)

    static let slotsRESP2 = RecordedReply(
        "CLUSTER SLOTS",
        """
        *2
        *3
        :0
        :8191
        *4
        $9
        127.0.0.1
        :51251
        $40
        fc6973c117f521c1200c34a0bc9761e094a8ed7a
        *0
        *3
        :8192
        :16383
        *4
        $9
        127.0.0.1
        :44959
        $40
        db6ad9b417dca39694700f725797f3267140f225
        *0
        """)

    static let shardsRESP2 = RecordedReply(
        "CLUSTER SHARDS",
        """
        *2
        *4
        $5
        slots
        *2
        :8192
        :16383
        $5
        nodes
        *1
        *14
        $2
        id
        $40
        db6ad9b417dca39694700f725797f3267140f225
        $4
        port
        :44959
        $2
        ip
        $9
        127.0.0.1
        $8
        endpoint
        $9
        127.0.0.1
        $4
        role
        $6
        master
        $18
        replication-offset
        :0
        $6
        health
        $6
        online
        *4
        $5
        slots
        *2
        :0
        :8191
        $5
        nodes
        *1
        *14
        $2
        id
        $40
        fc6973c117f521c1200c34a0bc9761e094a8ed7a
        $4
        port
        :51251
        $2
        ip
        $9
        127.0.0.1
        $8
        endpoint
        $9
        127.0.0.1
        $4
        role
        $6
        master
        $18
        replication-offset
        :0
        $6
        health
        $6
        online
        """)

    static let slots = RecordedReply(
        "CLUSTER SLOTS",
        """
        *2
        *3
        :0
        :8191
        *4
        $9
        127.0.0.1
        :51251
        $40
        fc6973c117f521c1200c34a0bc9761e094a8ed7a
        %0
        *3
        :8192
        :16383
        *4
        $9
        127.0.0.1
        :44959
        $40
        db6ad9b417dca39694700f725797f3267140f225
        %0
        """)

    static let shards = RecordedReply(
        "CLUSTER SHARDS",
        """
        *2
        %2
        $5
        slots
        *2
        :8192
        :16383
        $5
        nodes
        *1
        %7
        $2
        id
        $40
        db6ad9b417dca39694700f725797f3267140f225
        $4
        port
        :44959
        $2
        ip
        $9
        127.0.0.1
        $8
        endpoint
        $9
        127.0.0.1
        $4
        role
        $6
        master
        $18
        replication-offset
        :0
        $6
        health
        $6
        online
        %2
        $5
        slots
        *2
        :0
        :8191
        $5
        nodes
        *1
        %7
        $2
        id
        $40
        fc6973c117f521c1200c34a0bc9761e094a8ed7a
        $4
        port
        :51251
        $2
        ip
        $9
        127.0.0.1
        $8
        endpoint
        $9
        127.0.0.1
        $4
        role
        $6
        master
        $18
        replication-offset
        :0
        $6
        health
        $6
        online
        """)

    static let moved = RecordedReply(
        "GET foo",
        """
        -MOVED 12182 127.0.0.1:44959
        """)

    static let crossSlot = RecordedReply(
        "MGET a b",
        """
        -CROSSSLOT Keys in request don't hash to the same slot
        """)

    static let movedSubscription = RecordedReply(
        "SSUBSCRIBE foo",
        """
        -MOVED 12182 127.0.0.1:44959
        """)

    static let ask = RecordedReply(
        "GET bar",
        """
        -ASK 5061 127.0.0.1:44959
        """)

    static let asking = RecordedReply(
        "ASKING, GET bar",
        """
        +OK
        $-1
        """)

    static let tryAgain = RecordedReply(
        "ASKING, MGET",
        """
        +OK
        -TRYAGAIN Multiple keys request during rehashing of slot
        """)
}
