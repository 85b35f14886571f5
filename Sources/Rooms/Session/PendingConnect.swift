/// A connection whose `connect` is accepted, but not answered yet: it waits for its rooms.
struct PendingConnect {
    /// A room of the client's token, or of its request alone.
    typealias Request = (grant: SubscriptionGrant?, request: Command.SubscribeRequest)
    /// A room that the client may enter.
    typealias Entry = (
        grant: SubscriptionGrant?, request: Command.SubscribeRequest, policy: RoomPolicy, filter: TagFilter?
    )

    let number: UInt32
    var remaining: Set<String>
    private(set) var results: [(key: String, value: Reply.SubscribeResult)] = []
    /// Of the publications in `results`, in bytes.
    private var recoveredSize = 0

    init(number: UInt32, remaining: Set<String>) {
        self.number = number
        self.remaining = remaining
    }

    /// Adds the result of a room. Its publications are left out, as if they could not be recovered, where those of
    /// all rooms would have more than `sizeLimit` bytes: the reply is one message, whatever the client reads of it.
    mutating func add(_ result: Reply.SubscribeResult, of channel: String, sizeLimit: Int) {
        var result = result
        let size = result.publications.reduce(0) { $0 + $1.estimatedSize }
        if self.recoveredSize + size <= sizeLimit {
            self.recoveredSize += size
        } else {
            if let newest = result.publications.last { result.position.offset = newest.offset }
            result.publications = []
            result.isRecovered = false
        }
        self.remaining.remove(channel)
        self.results.append((channel, result))
    }

    /// Forgets a room that the client is not in, or no longer.
    mutating func remove(_ channel: String) {
        self.remaining.remove(channel)
        self.results.removeAll { $0.key == channel }
    }

    /// Rooms that a connection enters from its beginning, each once: those of its token, then those of its request. Of
    /// several for one room the first counts: a second membership would never end. Names that rooms cannot have are left out.
    static func requests(
        _ grants: [SubscriptionGrant], _ connect: Command.ConnectRequest, _ settings: RoomClientSettings
    ) -> [Request] {
        let grants = grants.filter { settings.allowsName($0.channel) }
        let requests = connect.subscriptions.filter { settings.allowsName($0.channel) }
        var joins: [Request] = []
        var named: Set<String> = []
        for grant in grants where named.insert(grant.channel).inserted {
            let wanted = requests.first { $0.channel == grant.channel }
            joins.append((grant, wanted ?? Command.SubscribeRequest(channel: grant.channel)))
        }
        for request in requests where named.insert(request.channel).inserted { joins.append((nil, request)) }
        for (index, join) in joins.enumerated() {
            guard let position = connect.received[join.request.channel] else { continue }
            joins[index].request.recovers = true
            joins[index].request.position = position
        }
        return joins
    }
}
