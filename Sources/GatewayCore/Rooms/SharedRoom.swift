import Rooms
import Synchronization

/// One room of the gateway: its history and presence, and the messages that some loops have not taken yet.
///
/// Messages get their order here, under one lock, and each loop takes them in this order. In a cluster Redis gives them
/// their order, and this is a copy of what Redis keeps, for as long as the room has members on this node.
package final class SharedRoom: Sendable {
    package let name: String
    /// The client that used it first; `nil` for the server itself.
    let maker: RoomClientKey?

    /// Source of the room's messages.
    private enum Source: Equatable {
        case local
        /// From the cluster; this node does not listen.
        case closed
        case opening
        case open
    }

    private struct State {
        var policy: RoomPolicy
        var source: Source
        /// Loops on which members wait until the room is open, or has caught up.
        var waiting: Set<Int> = []
        /// When a part of its history, or of those read before it, came last while it was being loaded.
        var lastProgress: Duration?
        var counted: CountedHistory
        /// Removals from the room's history in the cluster that the copy contains.
        var removals: UInt64 = 0
        var presence = Presence()
        var log = MessageLog()
        var idempotent = IdempotentPublications()
        /// When a member entered or left, or something was published, last.
        var lastUse: Duration = .zero
        /// Members that get publications as differences to the one before.
        var deltaMembers = 0
        /// The newest publication and its sequence number; without such members `nil`.
        var newest: (number: UInt64, data: Payload)?
        /// Position of the newest of this node's own publications that the cluster has acknowledged.
        var stored: StreamPosition?

        init(policy: RoomPolicy, source: Source, counted: CountedHistory) {
            self.policy = policy
            self.source = source
            self.counted = counted
        }
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - maker: the client that uses it first.
    ///   - isLocal: whether this node alone has the room.
    ///   - memory: of the histories of all rooms.
    ///   - epochs: of all rooms.
    init(
        name: String, policy: RoomPolicy, maker: RoomClientKey? = nil, isLocal: Bool = true,
        memory: HistoryMemory, epochs: RoomEpochs
    ) {
        self.name = name
        self.maker = maker
        let counted = CountedHistory(memory: memory, epochs: epochs)
        self.state = Mutex(State(policy: policy, source: isLocal ? .local : .closed, counted: counted))
    }

    deinit {
        self.state.withLock { $0.counted.history = nil }
    }

    package var policy: RoomPolicy { self.state.withLock(\.policy) }

    /// Applies the policy of a new configuration to what happens from now on.
    func set(_ policy: RoomPolicy) {
        self.state.withLock {
            $0.policy = policy
            if !policy.keepsHistory { $0.counted.end() }
            if !policy.hasPresence { $0.presence = Presence() }
        }
    }

    // MARK: Members

    /// State that a new member starts with.
    struct Membership {
        /// Messages up to this number came before it.
        let sequence: UInt64
        let result: RoomClient.JoinResult
        /// Sequence number of the newest publication, if the member recovers it and gets deltas.
        let deltaBase: UInt64?
        /// Loops that have messages to take.
        let loops: [(loop: Int, cost: Int)]
    }

    enum JoinError: Error {
        case full
        /// The room is not open, or is behind the position. `LoopRooms.opened` is called on the loop when it can try again.
        case notReady
        /// The cluster cannot be reached.
        case away
        /// The member would not recover all, and does not want to enter then.
        case unrecoverablePosition
        /// The room was not made.
        case notMade(RoomHub.AcquireError)
    }

    /// Adds a member on `loop`, and a message that it joined for those that want it. In a cluster the broker tells it.
    /// - Parameters:
    ///   - info: shown to others; `nil` for a member that the room does not list.
    ///   - rejectsLoss: whether the member enters only if it recovers all.
    ///   - usesDeltas: the same as when it leaves.
    ///   - isPatient: whether to wait for a room that is behind `position`.
    func join(
        onLoop loop: Int, info: ClientInfo?, recovering position: StreamPosition?, limit: Int,
        rejectsLoss: Bool = false, usesDeltas: Bool = false, isPatient: Bool = true, now: Duration
    ) throws(JoinError) -> Membership {
        let joined = self.state.withLock { state -> Result<Membership, JoinError> in
            guard Self.isReady(state, for: position, isPatient: isPatient) else {
                state.waiting.insert(loop)
                return .failure(.notReady)
            }
            if let most = state.policy.maximumMembers, state.log.memberCount >= most { return .failure(.full) }
            state.lastUse = now
            let result = Self.recover(from: position, limit: limit, now, in: &state)
            guard result.isRecovered || !rejectsLoss else { return .failure(.unrecoverablePosition) }
            let deltaBase = usesDeltas ? Self.beginDeltas(after: result.publications.last, in: &state) : nil
            // Before the message that it joined, which the member receives, too.
            let sequence = state.log.end - 1
            state.log.addMember(onLoop: loop)
            var loops: [(loop: Int, cost: Int)] = []
            if let info {
                if state.policy.hasPresence { state.presence.add(info) }
                if state.policy.sendsJoinLeave, state.source == .local { loops = Self.append(.join(info), to: &state) }
            }
            return .success(Membership(sequence: sequence, result: result, deltaBase: deltaBase, loops: loops))
        }
        return try joined.get()
    }

    private static func recover(
        from position: StreamPosition?, limit: Int, _ now: Duration, in state: inout State
    ) -> RoomClient.JoinResult {
        var result = RoomClient.JoinResult(position: StreamPosition())
        guard state.policy.keepsHistory else { return result }
        if state.source == .local { state.counted.begin() }
        state.counted.history?.expire(now)
        result.position = state.counted.history?.position ?? StreamPosition()
        if let position, let history = state.counted.history {
            (result.publications, result.isRecovered) = history.recover(
                from: position, mode: state.policy.recovery, limit: limit)
        }
        return result
    }

    /// Counts a member with deltas.
    /// - Parameter last: what it recovers last.
    /// - Returns: the sequence number of the newest publication, if that is the same.
    private static func beginDeltas(after last: Publication?, in state: inout State) -> UInt64? {
        state.deltaMembers += 1
        guard let last else { return nil }
        let newest = state.newest ?? (state.log.end - 1, last.data)
        state.newest = newest
        return newest.data == last.data ? newest.number : nil
    }

    private static func isReady(_ state: State, for position: StreamPosition?, isPatient: Bool) -> Bool {
        switch state.source {
        case .local: return true
        case .closed, .opening: return false
        case .open:
            guard state.policy.keepsHistory else { return true }
            guard let own = state.counted.history?.position else { return false }
            guard isPatient else { return true }
            // The client was on a node that is ahead of this one.
            if let position, position.epoch == own.epoch, position.offset > own.offset { return false }
            // The answer to a publisher of this node was faster than the message of its publication.
            guard let stored = state.stored else { return true }
            return stored.epoch == own.epoch && stored.offset <= own.offset
        }
    }

    /// Removes a member, and adds a message that it left.
    /// - Returns: loops that have messages to take.
    func leave(onLoop loop: Int, info: ClientInfo?, usesDeltas: Bool = false, now: Duration)
        -> [(loop: Int, cost: Int)]
    {
        self.state.withLock { state in
            state.lastUse = now
            if usesDeltas {
                state.deltaMembers -= 1
                if state.deltaMembers == 0 { state.newest = nil }
            }
            state.log.removeMember(onLoop: loop)
            guard let info else { return [] }
            let isListed = state.presence.remove(client: info.client) != nil
            guard state.source == .local, state.policy.sendsJoinLeave, isListed || !state.policy.hasPresence else {
                return []
            }
            return Self.append(.leave(info), to: &state)
        }
    }

    // MARK: Messages

    struct Published {
        let position: StreamPosition
        /// Loops that have messages to take, and how many bytes.
        let loops: [(loop: Int, cost: Int)]
        /// The key was used before: nothing was published.
        var isRepeated = false
    }

    /// Appends a publication to the history, if the room keeps one, and delivers it.
    /// - Parameters:
    ///   - now: since any fixed instant.
    ///   - time: milliseconds since 1970.
    func publish(
        _ publication: Publication, plain: RoomMessage.Plain? = nil, origin: RoomMessage.Origin? = nil,
        skipsHistory: Bool = false, idempotencyKey: String? = nil, now: Duration, time: UInt64
    ) -> Published {
        self.state.withLock { state in
            if let key = idempotencyKey, let former = state.idempotent.position(of: key, now: now) {
                return Published(position: former, loops: [], isRepeated: true)
            }
            var publication = publication
            publication.time = time
            state.lastUse = now
            if state.policy.keepsHistory, publication.data.isEmpty, let plain { publication.data = plain.payload }
            if state.policy.keepsHistory, !skipsHistory {
                state.counted.begin()
                publication = state.counted.history?.append(publication, policy: state.policy, now: now) ?? publication
            }
            // A publication that is not kept has no position in the stream.
            let position = (skipsHistory ? nil : state.counted.history?.position) ?? StreamPosition()
            if let key = idempotencyKey { state.idempotent.add(key, at: position, now: now) }
            let loops = Self.append(.publication(publication), plain: plain, origin: origin, to: &state)
            return Published(position: position, loops: loops)
        }
    }

    private static func append(
        _ content: RoomMessage.Content, plain: RoomMessage.Plain? = nil, origin: RoomMessage.Origin? = nil,
        to state: inout State
    ) -> [(loop: Int, cost: Int)] {
        guard state.log.hasMembers else { return [] }
        var content = content
        var delta: PublicationDelta?
        if state.deltaMembers > 0, case .publication(var publication) = content {
            if publication.data.isEmpty, let plain { publication.data = plain.payload }
            content = .publication(publication)
            delta = state.newest.map { PublicationDelta(base: $0.number, from: $0.data, to: publication.data) }
            state.newest = (state.log.end, publication.data)
        }
        return state.log.append(
            RoomMessage(content, plain: plain, origin: origin, sequence: state.log.end, delta: delta))
    }

    /// Takes messages for a loop in order, up to a total cost of `limit` bytes, at least one.
    func take(forLoop loop: Int, upTo limit: Int) -> (messages: [RoomMessage], cost: Int, hasMore: Bool) {
        self.state.withLock { $0.log.take(forLoop: loop, upTo: limit) }
    }

    // MARK: Reading

    package struct Counts: Sendable, Equatable {
        package var members: Int
        /// Listed in presence.
        package var clients: Int
        package var users: Int
        package var publications: Int
        package var historyBytes: Int
        package var position: StreamPosition?
    }

    package func counts(now: Duration) -> Counts {
        self.state.withLock { state in
            state.counted.history?.expire(now)
            return Counts(
                members: state.log.memberCount, clients: state.presence.clientCount, users: state.presence.userCount,
                publications: state.counted.history?.count ?? 0, historyBytes: state.counted.history?.cost ?? 0,
                position: state.counted.history?.position)
        }
    }

    /// A snapshot, so that the lock is not held while it is read.
    package var presence: Presence { self.state.withLock(\.presence) }

    package func history(
        _ request: Command.HistoryRequest, now: Duration
    ) throws(RoomHistory.RequestError) -> (publications: [Publication], position: StreamPosition) {
        let history = self.state.withLock { state -> RoomHistory? in
            guard state.policy.keepsHistory else { return nil }
            state.counted.begin()
            state.counted.history?.expire(now)
            return state.counted.history
        }
        guard let history else { return ([], StreamPosition()) }
        let publications = try history.read(
            limit: request.limit, since: request.since, isReversed: request.isReversed)
        return (publications, history.position)
    }

    package func removeHistory() {
        self.state.withLock {
            $0.counted.history?.removeAll()
            $0.removals &+= 1
        }
    }

    /// - Returns: whether the publication was there.
    package func removePublication(offset: UInt64) -> Bool {
        self.state.withLock {
            $0.removals &+= 1
            return $0.counted.history?.remove(offset: offset) ?? false
        }
    }

    /// Order in which rooms lose their histories: the first of all first.
    struct HistoryUse: Comparable {
        let hasMembers: Bool
        let lastUse: Duration

        static func < (left: HistoryUse, right: HistoryUse) -> Bool {
            (left.hasMembers ? 1 : 0, left.lastUse) < (right.hasMembers ? 1 : 0, right.lastUse)
        }
    }

    /// `nil` if the room keeps no publications.
    var historyUse: HistoryUse? {
        self.state.withLock { state in
            guard state.counted.bytes > 0 else { return nil }
            return HistoryUse(hasMembers: state.log.hasMembers, lastUse: state.lastUse)
        }
    }

    /// Removes all publications. A room without members begins a new epoch with the next one; with members, the position
    /// stays, and clients that come back do not recover what they missed (`recovered` is false).
    func forgetHistory() {
        self.state.withLock { state in
            if state.source == .local, !state.log.hasMembers {
                state.counted.end()
            } else {
                state.counted.history?.removeAll()
            }
        }
    }

    /// Removes the oldest publications, at least so many bytes, but not the newest one.
    func shrinkHistory(by bytes: Int) {
        self.state.withLock { state in
            let limit = state.counted.bytes - bytes
            state.counted.history?.shrink(to: limit)
        }
    }

    /// The room is forgotten, and makes way for another one of its name.
    func end() {
        self.state.withLock { $0.counted.end() }
    }

    /// Nothing would be lost without the room. Its epoch lasts as long as its history would.
    /// - Parameter isCrowded: whether an epoch in which nothing was published ends sooner.
    func isDisposable(now: Duration, isCrowded: Bool = false) -> Bool {
        self.state.withLock { state in
            guard !state.log.hasMembers, state.idempotent.areExpired(now: now) else { return false }
            guard let history = state.counted.history else { return true }
            state.counted.history?.expire(now)
            let isNew = history.position.offset == 0
            let newRoomTime = isCrowded ? Self.crowdedRoomTime : Self.newRoomTime
            return now >= state.lastUse
                + (isNew ? min(state.policy.historyTime, newRoomTime) : state.policy.historyTime)
        }
    }

    /// An epoch in which nothing was published is kept for so long: names that clients make up must not fill the memory.
    private static let newRoomTime: Duration = .seconds(60)
    /// The same while the gateway has more than half of the rooms that it may have. Who comes back later has missed
    /// nothing.
    private static let crowdedRoomTime: Duration = .seconds(2)
}

// MARK: In a cluster

extension SharedRoom {
    /// The room begins to open, unless it is open.
    /// - Returns: whether the caller has to open it.
    func beginOpening() -> Bool {
        self.state.withLock { state in
            guard state.source == .closed else { return false }
            state.source = .opening
            return true
        }
    }

    /// Its history is being read, or its turn comes: a part of it, or of another one before it, came at `now`.
    func noteProgress(at now: Duration) { self.state.withLock { $0.lastProgress = now } }

    var lastProgress: Duration? { self.state.withLock(\.lastProgress) }

    /// Loops on which members waited; they try again.
    func takeWaiting() -> Set<Int> {
        self.state.withLock { state in
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Closes the room if it has no members, and none wait.
    /// - Parameter idleTime: since the last member left.
    func closeIfUnused(now: Duration, idleTime: Duration) -> Bool {
        self.state.withLock { state in
            guard state.source != .local, !state.log.hasMembers, state.waiting.isEmpty, now >= state.lastUse + idleTime
            else { return false }
            state.source = .closed
            state.counted.history = nil
            state.presence = Presence()
            return true
        }
    }

    /// Whether a publication with this idempotency key has gone to the members of this node alone.
    func wasDeliveredAlone(_ key: String, now: Duration) -> Bool {
        self.state.withLock { $0.idempotent.position(of: key, now: now) != nil }
    }

    func noteDeliveredAlone(_ key: String, now: Duration) {
        self.state.withLock { $0.idempotent.add(key, at: StreamPosition(), now: now) }
    }

    /// Newest position that this node knows; `nil` if the room keeps no history, or is not open.
    var knownPosition: StreamPosition? {
        self.state.withLock { $0.source == .open ? $0.counted.history?.position : nil }
    }

    /// The cluster has acknowledged a publication of this node. Who enters from now on finds it in the history.
    func noteStored(at position: StreamPosition) {
        self.state.withLock { state in
            guard state.source == .open, state.policy.keepsHistory, position.offset > 0 else { return }
            if let former = state.stored, former.epoch == position.epoch, former.offset > position.offset { return }
            state.stored = position
        }
    }

    enum LoadResult: Equatable {
        case loaded
        /// The cluster has forgotten publications of this stream that it had acknowledged: another epoch must begin.
        case wentBack
        /// Publications are missing, or this node may have some that were removed: all must be loaded.
        case needsAll
    }

    /// Takes over what the cluster keeps, after the room was opened or may have missed messages. Members get what they
    /// missed. If that is not complete, the subscriptions of positioned members end with 2500, and clients subscribe again;
    /// others get what there is.
    /// - Parameter snapshot: `nil` for a room that keeps nothing.
    func load(_ snapshot: Snapshot?, now: Duration) -> (result: LoadResult, loops: [(loop: Int, cost: Int)]) {
        self.state.withLock { state in
            guard state.source != .closed else { return (.loaded, []) }
            let wasOpen = state.source == .open
            state.source = .open
            guard let snapshot, state.policy.keepsHistory else { return (.loaded, []) }
            // Of a stream that the cluster has forgotten.
            if state.stored?.epoch != snapshot.position.epoch { state.stored = nil }
            guard wasOpen, let own = state.counted.history?.position else {
                Self.replaceHistory(snapshot, now, in: &state)
                return (.loaded, [])
            }
            if snapshot.position.epoch == own.epoch, snapshot.position.offset < own.offset { return (.wentBack, []) }
            let missed = snapshot.missed(after: own)
            let isComplete = snapshot.isComplete(missed, after: own, removals: state.removals)
            // A publication keeps those before it from expiring, also some that this node no longer has.
            let mayHaveMore = !missed.isEmpty && state.counted.history?.hasExpired(now) == true
            if snapshot.position.epoch == own.epoch, !isComplete || mayHaveMore, !snapshot.isWhole {
                return (.needsAll, [])
            }
            var cost = 0
            if !isComplete {
                let before = missed.first.map { $0.publication.offset - 1 } ?? snapshot.position.offset
                let position = StreamPosition(offset: before, epoch: snapshot.position.epoch)
                cost += Self.append(.interruption(position), to: &state).first?.cost ?? 0
            }
            for entry in missed {
                cost += Self.deliver(entry.publication, entry.plain, entry.origin, now, to: &state).first?.cost ?? 0
            }
            if snapshot.isWhole || !isComplete {
                Self.replaceHistory(snapshot, now, in: &state)
            } else {
                Self.limitExpiry(snapshot, now, in: &state)
            }
            return (.loaded, cost > 0 ? state.log.loops(taking: cost) : [])
        }
    }

    private static func replaceHistory(_ snapshot: Snapshot, _ now: Duration, in state: inout State) {
        state.counted.history = RoomHistory(
            position: snapshot.position, publications: snapshot.publications.map(\.publication),
            floor: snapshot.floor, policy: state.policy, now: now)
        state.removals = snapshot.removals
        Self.limitExpiry(snapshot, now, in: &state)
    }

    private static func limitExpiry(_ snapshot: Snapshot, _ now: Duration, in state: inout State) {
        if let lasting = snapshot.lasting { state.counted.history?.limitExpiry(to: now + lasting) }
    }

    /// - Returns: loops that have it to take.
    private static func deliver(
        _ publication: Publication, _ plain: RoomMessage.Plain?, _ origin: RoomMessage.Origin?, _ now: Duration,
        to state: inout State
    ) -> [(loop: Int, cost: Int)] {
        let kept =
            state.counted.history?.append(publication, at: publication.offset, policy: state.policy, now: now)
            ?? publication
        return Self.append(.publication(kept), plain: plain, origin: origin, to: &state)
    }

    enum Received {
        /// The message is for these loops, and each has as many bytes to take.
        case delivered([(loop: Int, cost: Int)])
        /// Messages before it are missing, or its stream is another one: what the cluster keeps must be loaded.
        case gap
        /// As `delivered`, and the history begins with it, because the policy keeps one only now. The cluster may have more.
        case begun([(loop: Int, cost: Int)])
        /// It was received before, or the room has no members here.
        case ignored
    }

    /// A message that some node published.
    /// - Parameters:
    ///   - position: of a publication that the cluster keeps; else `nil`.
    ///   - isLoading: whether what the cluster keeps is being loaded, such publications among it.
    func receive(
        _ content: RoomMessage.Content, plain: RoomMessage.Plain?, origin: RoomMessage.Origin?,
        position: StreamPosition?, isLoading: Bool = false, now: Duration
    ) -> Received {
        self.state.withLock { state in
            guard state.source == .open else { return .ignored }
            guard case .publication(let publication) = content, let position, state.policy.keepsHistory else {
                return .delivered(Self.append(content, plain: plain, origin: origin, to: &state))
            }
            guard let own = state.counted.history?.position else {
                let former = StreamPosition(offset: position.offset &- 1, epoch: position.epoch)
                state.counted.history = RoomHistory(
                    position: former, publications: [], floor: former.offset, policy: state.policy, now: now)
                return .begun(Self.deliver(publication, plain, origin, now, to: &state))
            }
            guard isLoading || own.epoch == position.epoch else { return .gap }
            if isLoading || position.offset <= own.offset { return .ignored }
            guard position.offset == own.offset + 1 else { return .gap }
            return .delivered(Self.deliver(publication, plain, origin, now, to: &state))
        }
    }

    /// Identifiers of the clients on this node that the room lists.
    var listedClients: [String] { self.state.withLock { $0.policy.hasPresence ? $0.presence.identifiers : [] } }

    /// Those of the clients that this node still lists.
    func listed(among clients: ArraySlice<String>) -> [ClientInfo] {
        self.state.withLock { state in clients.compactMap { state.presence[$0] } }
    }

    /// Those of the clients that this node no longer lists.
    func unlisted(among clients: [ClientInfo]) -> [String] {
        self.state.withLock { state in clients.map(\.client).filter { !state.presence.contains(client: $0) } }
    }
}
