// Said by redis-server 7.0.15 (Debian 12), recorded from its socket.

extension RecordedReply {
    static let pushes: [RecordedReply] = [
        .subscribe, .subscribePattern, .subscribeShard, .messages, .pingWithSubscriptions, .messageBeforeReply,
        .unsubscribe, .unsubscribeShard, .unsubscribeNothing, .invalidation, .invalidationOfAll, .subscribeRESP2,
        .messageRESP2, .pingRESP2, .refusedRESP2, .unsubscribeRESP2, .allFieldsRESP2, .missingRESP2, .noListRESP2,
        .rangeWithScoresRESP2,
    ]

    static let subscribe = RecordedReply(
        "SUBSCRIBE news sport",
        """
        >3
        $9
        subscribe
        $4
        news
        :1
        >3
        $9
        subscribe
        $5
        sport
        :2
        """)

    static let subscribePattern = RecordedReply(
        "PSUBSCRIBE n*",
        """
        >3
        $10
        psubscribe
        $2
        n*
        :3
        """)

    static let subscribeShard = RecordedReply(
        "SSUBSCRIBE {lobby}:s",
        """
        >3
        $10
        ssubscribe
        $9
        {lobby}:s
        :1
        """)

    static let messages = RecordedReply(
        "(messages)",
        """
        >3
        $7
        message
        $4
        news
        $5
        first
        >4
        $8
        pmessage
        $2
        n*
        $4
        news
        $5
        first
        >3
        $8
        smessage
        $9
        {lobby}:s
        $5
        shard
        """)

    static let pingWithSubscriptions = RecordedReply(
        "PING",
        """
        +PONG
        """)

    static let messageBeforeReply = RecordedReply(
        "GET, PUBLISH to itself",
        """
        $1
        1
        >3
        $7
        message
        $5
        sport
        $3
        own
        :1
        """)

    static let unsubscribe = RecordedReply(
        "UNSUBSCRIBE news never",
        """
        >3
        $11
        unsubscribe
        $4
        news
        :2
        >3
        $11
        unsubscribe
        $5
        never
        :2
        """)

    static let unsubscribeShard = RecordedReply(
        "SUNSUBSCRIBE {lobby}:s",
        """
        >3
        $12
        sunsubscribe
        $9
        {lobby}:s
        :0
        """)

    static let unsubscribeNothing = RecordedReply(
        "UNSUBSCRIBE",
        """
        >3
        $11
        unsubscribe
        _
        :0
        """)

    static let invalidation = RecordedReply(
        "(invalidation)",
        """
        >2
        $10
        invalidate
        *1
        $1
        n
        """)

    static let invalidationOfAll = RecordedReply(
        "(invalidation of all)",
        """
        >2
        $10
        invalidate
        _
        """)

    static let subscribeRESP2 = RecordedReply(
        "SUBSCRIBE news",
        """
        *3
        $9
        subscribe
        $4
        news
        :1
        """)

    static let messageRESP2 = RecordedReply(
        "(message)",
        """
        *3
        $7
        message
        $4
        news
        $6
        second
        """)

    static let pingRESP2 = RecordedReply(
        "PING",
        """
        *2
        $4
        pong
        $0

        """)

    static let refusedRESP2 = RecordedReply(
        "GET x",
        """
        -ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed \
        in this context
        """)

    static let unsubscribeRESP2 = RecordedReply(
        "UNSUBSCRIBE news",
        """
        *3
        $11
        unsubscribe
        $4
        news
        :0
        """)

    static let allFieldsRESP2 = RecordedReply(
        "HGETALL h",
        """
        *2
        $1
        a
        $1
        1
        """)

    static let missingRESP2 = RecordedReply(
        "GET missing",
        """
        $-1
        """)

    static let noListRESP2 = RecordedReply(
        "BLPOP nolist 0.01",
        """
        *-1
        """)

    static let rangeWithScoresRESP2 = RecordedReply(
        "ZRANGE z 0 -1 WITHSCORES",
        """
        *2
        $1
        m
        $3
        2.5
        """)
}
