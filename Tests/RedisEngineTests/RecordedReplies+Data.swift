// Said by redis-server 7.0.15 (Debian 12), recorded from its socket.

extension RecordedReply {
    static let data: [RecordedReply] = [
        .helloWithoutPassword, .getWithoutPassword, .helloWithWrongPassword, .hello, .selectTooLarge, .select,
        .addToStream, .range, .read, .readNothing, .setFields, .allFields, .rangeWithScores, .score, .emptySet,
        .setMembers, .missing, .script, .scriptDouble, .scriptMap, .scriptBigNumber, .scriptBoolean,
        .scriptVerbatim, .unknownScript, .loadScript, .wrongType, .unknownCommand, .failedScript, .transaction,
        .role,
    ]

    static let helloWithoutPassword = RecordedReply(
        "HELLO 3",
        """
        -NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> \
        <pass> option can be used to authenticate the client and select the RESP protocol version at the \
        same time
        """)

    static let getWithoutPassword = RecordedReply(
        "GET a",
        """
        -NOAUTH Authentication required.
        """)

    static let helloWithWrongPassword = RecordedReply(
        "HELLO 3 AUTH default wrong",
        """
        -WRONGPASS invalid username-password pair or user is disabled.
        """)

    static let hello = RecordedReply(
        "HELLO 3 AUTH default opensesame SETNAME sluice",
        """
        %7
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
        $10
        standalone
        $4
        role
        $6
        master
        $7
        modules
        *0
        """)

    static let selectTooLarge = RecordedReply(
        "SELECT 99",
        """
        -ERR DB index is out of range
        """)

    static let select = RecordedReply(
        "SELECT 1",
        """
        +OK
        """)

    static let addToStream = RecordedReply(
        "XADD room:{lobby} MAXLEN ~ 1000 1700000000000-1 data héllo from anna",
        """
        $15
        1700000000000-1
        """)

    static let range = RecordedReply(
        "XRANGE room:{lobby} - + COUNT 10",
        """
        *2
        *2
        $15
        1700000000000-1
        *4
        $4
        data
        $6
        héllo
        $4
        from
        $4
        anna
        *2
        $15
        1700000000000-2
        *2
        $4
        data
        $10
        two
        lines
        """)

    static let read = RecordedReply(
        "XREAD COUNT 2 STREAMS room:{lobby} 0",
        """
        %1
        $12
        room:{lobby}
        *2
        *2
        $15
        1700000000000-1
        *4
        $4
        data
        $6
        héllo
        $4
        from
        $4
        anna
        *2
        $15
        1700000000000-2
        *2
        $4
        data
        $10
        two
        lines
        """)

    static let readNothing = RecordedReply(
        "XREAD COUNT 2 STREAMS room:{lobby} $",
        """
        _
        """)

    static let setFields = RecordedReply(
        "HSET presence:{lobby} c1 {\"user\":\"anna\"} c2 {}",
        """
        :2
        """)

    static let allFields = RecordedReply(
        "HGETALL presence:{lobby}",
        """
        %2
        $2
        c1
        $15
        {"user":"anna"}
        $2
        c2
        $2
        {}
        """)

    static let rangeWithScores = RecordedReply(
        "ZRANGE seen:{lobby} 0 -1 WITHSCORES",
        """
        *3
        *2
        $2
        c3
        ,-inf
        *2
        $2
        c1
        ,1.5
        *2
        $2
        c2
        ,inf
        """)

    static let score = RecordedReply(
        "ZSCORE seen:{lobby} c1",
        """
        ,1.5
        """)

    static let emptySet = RecordedReply(
        "SMEMBERS nothing",
        """
        ~0
        """)

    static let setMembers = RecordedReply(
        "SMEMBERS set",
        """
        ~1
        $1
        x
        """)

    static let missing = RecordedReply(
        "GET missing",
        """
        _
        """)

    static let script = RecordedReply(
        "EVAL return {1, 'two', redis.call('GET','missing'), {3, {4}}, redis.status_reply('FINE'…",
        """
        *6
        :1
        $3
        two
        _
        *2
        :3
        *1
        :4
        +FINE
        -MY error
        """)

    static let scriptDouble = RecordedReply(
        "EVAL redis.setresp(3); return {double=3.25} 0",
        """
        ,3.25
        """)

    static let scriptMap = RecordedReply(
        "EVAL redis.setresp(3); return {map={a=1}} 0",
        """
        %1
        $1
        a
        :1
        """)

    static let scriptBigNumber = RecordedReply(
        "EVAL redis.setresp(3); return {big_number='123456789012345678901234567890'} 0",
        """
        (123456789012345678901234567890
        """)

    static let scriptBoolean = RecordedReply(
        "EVAL redis.setresp(3); return true 0",
        """
        #t
        """)

    static let scriptVerbatim = RecordedReply(
        "EVAL redis.setresp(3); return {verbatim_string={format='txt',string='hello'}} 0",
        """
        =9
        txt:hello
        """)

    static let unknownScript = RecordedReply(
        "EVALSHA e0e1f9fabfc9d4800c877a703b823ac0578ff8db 1 k",
        """
        -NOSCRIPT No matching script. Please use EVAL.
        """)

    static let loadScript = RecordedReply(
        "SCRIPT LOAD return ARGV[1]",
        """
        $40
        098e0f0d1448c0a81dafe820f66d460eb09263da
        """)

    static let wrongType = RecordedReply(
        "LPUSH room:{lobby} x",
        """
        -WRONGTYPE Operation against a key holding the wrong kind of value
        """)

    static let unknownCommand = RecordedReply(
        "NOSUCH thing",
        """
        -ERR unknown command 'NOSUCH', with args beginning with: 'thing'\u{20}
        """)

    static let failedScript = RecordedReply(
        "EVAL error('boom') 0",
        """
        -ERR user_script:1: boom script: 82903a0434f1503e152f89c03c9acd881a0e8150, on @user_script:1.
        """)

    static let transaction = RecordedReply(
        "MULTI, INCR, LPUSH, EXEC",
        """
        +OK
        +QUEUED
        +QUEUED
        *2
        :1
        -WRONGTYPE Operation against a key holding the wrong kind of value
        """)

    static let role = RecordedReply(
        "ROLE",
        """
        *3
        $6
        master
        :0
        *0
        """)
}
