/// One client's connection to the rooms: commands in, actions out (Centrifuge's client protocol, version 2).
///
/// Operations in rooms complete later: the owner performs them in order, and reports each with `completed`. A command
/// that breaks the protocol's order ends the connection with its code.
package struct RoomClient: Sendable {
    private enum Phase {
        case new(deadline: Duration)
        /// `connect` is accepted; whether the user may have one more connection is not known yet.
        case registering(number: UInt32, [PendingConnect.Request])
        /// `connect` is accepted; some of its subscriptions are not complete.
        case connecting(PendingConnect)
        case connected
        case closed
    }

    private let settings: RoomClientSettings
    private let authority: any RoomAuthority
    /// The client sends nothing but its request to connect: pings are not answered, and errors end the connection.
    private let onlyReceives: Bool
    package let identifier: String
    private var phase: Phase
    private var grant = ConnectionGrant()
    private var subscriptions: [String: ClientSubscription] = [:]
    /// Commands that begin or end memberships in rooms that the client is entering: performed in order after that.
    private var deferred: [String: [Command]] = [:]
    private var actions: [Action] = []
    private var actionIndex = 0
    private var nextPing: Duration?
    private var pongDeadline: Duration?
    /// Begin with what the client has used up on former connections.
    package var meters = RoomMeters()
    /// Commands that failed since an instant.
    private var errors: (count: Int, since: Duration)
    /// Earliest expiry of the connection and its subscriptions.
    private var firstExpiry: UInt64?
    /// Operations that are not complete.
    package private(set) var pendingCount = 0

    /// - Parameters:
    ///   - identifier: unique among all connections; other clients see it.
    ///   - now: when the connection was opened.
    package init(
        identifier: String, settings: RoomClientSettings, authority: any RoomAuthority, onlyReceives: Bool = false,
        now: Duration
    ) {
        self.onlyReceives = onlyReceives
        self.identifier = identifier
        self.settings = settings
        self.authority = authority
        self.errors = (0, now)
        self.phase = .new(deadline: now + settings.connectTimeout)
    }

    package var user: String { self.grant.user }
    /// Rooms that its token names, whether the client is in them or not.
    package var grantedChannels: [String] { self.grant.subscriptions.map(\.channel) }
    package var channels: [String] { self.subscriptions.filter(\.value.isComplete).keys.sorted() }
    package var isClosed: Bool { if case .closed = self.phase { true } else { false } }
    /// Further commands must wait until its `connect` is answered.
    package var isConnecting: Bool {
        switch self.phase {
        case .registering, .connecting: true
        case .new, .connected, .closed: false
        }
    }
    /// Its `connect` is answered.
    package var isConnected: Bool { if case .connected = self.phase { true } else { false } }

    /// The room that the client entered by this command.
    package func channel(subscribedBy number: UInt32) -> String? {
        self.subscriptions.first { $0.value.number == number && !$0.value.isServerSide }?.key
    }

    package var info: ClientInfo {
        ClientInfo(user: self.grant.user, client: self.identifier, connectionInfo: self.grant.info)
    }

    /// The next action, in order; `nil` when all are taken.
    package mutating func nextAction() -> Action? {
        guard self.actionIndex < self.actions.count else {
            self.actions.removeAll(keepingCapacity: true)
            self.actionIndex = 0
            return nil
        }
        self.actionIndex += 1
        return self.actions[self.actionIndex - 1]
    }

    private mutating func act(_ action: Action) { self.actions.append(action) }

    // MARK: Commands

    package mutating func received(_ command: Command, at now: Instant) {
        guard !self.isClosed else { return }
        if command == .pong, self.pongDeadline.take() != nil { return }
        guard self.meters.allowsCommand(rate: self.settings.commandRate, at: now.elapsed) else {
            return self.close(.tooManyRequests)
        }
        // An answer to no ping is harmless, but counts: thousands of them fit into one message.
        if command == .pong { return }
        if now.elapsed - self.errors.since >= RoomClientSettings.errorPeriod { self.errors = (0, now.elapsed) }
        if case .send = command.request { return self.close(.notAvailable) }
        guard command.number != 0 else { return self.close(.badRequest) }
        switch (self.phase, command.request) {
        case (.closed, _): return
        case (.new, .connect(let request)): self.connect(command.number, request, now)
        case (.new, _), (.registering, _), (.connecting, _), (.connected, .connect): self.close(.badRequest)
        case (.connected, let request): self.perform(request, number: command.number, now)
        }
    }

    /// The peer sent bytes that are no command.
    package mutating func receivedMalformedBytes() { self.close(.badRequest) }

    private mutating func perform(_ request: Command.Request, number: UInt32, _ now: Instant) {
        guard !self.isDeferred(Command(number: number, request)) else { return }
        switch request {
        case .subscribe(let request): self.subscribe(number, request, now)
        case .unsubscribe(let channel): self.unsubscribe(number, channel)
        case .publish(let channel, let data): self.publish(number, channel, data, now)
        case .presence(let channel):
            guard self.permitsReading(number, channel, where: \.hasPresence) else { return }
            self.begin(.presence(number: number, channel: channel))
        case .presenceStats(let channel):
            guard self.permitsReading(number, channel, where: \.hasPresence) else { return }
            self.begin(.presenceStats(number: number, channel: channel))
        case .history(var request):
            guard self.permitsReading(number, request.channel, where: \.keepsHistory) else { return }
            // There is nothing before the first publication.
            if request.isReversed, request.since?.offset == 0 { return self.refuse(number, .badRequest) }
            let most = self.settings.maximumHistory
            request.limit = request.limit < 0 ? most : min(request.limit, most)
            self.begin(.history(number: number, request))
        case .refresh(let token): self.refresh(number, token, now)
        case .subscriptionRefresh(let channel, let token): self.refreshSubscription(number, channel, token, now)
        case .ping: self.act(.send(.pong(number: number)))
        case .rpc, .unsupported: self.refuse(number, .notAvailable)
        case .connect, .send, .pong: self.close(.badRequest)
        }
    }

    /// Defers a command that begins or ends a membership while the room has not answered a former one.
    private mutating func isDeferred(_ command: Command) -> Bool {
        guard let channel = command.request.membershipChannel, self.settings.allowsName(channel),
            self.deferred[channel] != nil || self.subscriptions[channel]?.isComplete == false
        else { return false }
        self.deferred[channel, default: []].append(command)
        self.pendingCount += 1
        return true
    }

    /// Whether the owner must not pass the command on yet: the client is entering its room, and sent it as a member.
    package func mustWait(_ command: Command) -> Bool {
        guard let channel = command.request.usedChannel, self.settings.allowsName(channel) else { return false }
        return self.subscriptions[channel]?.isComplete == false
    }

    private mutating func begin(_ action: Action) {
        self.pendingCount += 1
        self.act(action)
    }

    /// An operation is over; `reply` answers its command.
    package mutating func completed(_ reply: Reply) {
        self.pendingCount -= 1
        guard !self.isClosed else { return }
        if case .error(_, let error) = reply { self.count(error) }
        if !self.isClosed { self.act(.send(reply)) }
    }

    private mutating func refuse(_ number: UInt32, _ error: CommandError) {
        self.act(.send(.error(number: number, error)))
        self.count(error)
    }

    private mutating func count(_ error: CommandError) {
        // Temporary ones are bounded by the rate of commands, and clients would not connect again.
        guard !error.isTemporary else { return }
        self.errors.count += 1
        if self.errors.count > self.settings.maximumErrors { self.close(.tooManyErrors) }
    }

    // MARK: Connect

    private mutating func connect(_ number: UInt32, _ request: Command.ConnectRequest, _ now: Instant) {
        let grant: ConnectionGrant
        do throws(TokenRefusal) {
            grant = try self.authority.connection(token: request.token, now: now.unix)
        } catch {
            switch error {
            case .expired where self.onlyReceives: self.close(.expired)
            // The client connects again with a new token, on a new connection if it likes.
            case .expired: self.refuse(number, .tokenExpired)
            case .invalid, .foreign: self.close(.invalidToken)
            case .missing: self.close(.badRequest)
            }
            return
        }
        if let expiry = grant.expiry, expiry < now.unix {
            return self.onlyReceives ? self.close(.expired) : self.refuse(number, .expired)
        }
        self.grant = grant
        let requests = PendingConnect.requests(self.grant.subscriptions, request, self.settings)
        guard requests.count <= self.settings.maximumSubscriptions else { return self.close(.channelLimit) }
        self.findFirstExpiry()
        self.phase = .registering(number: number, requests)
        self.act(.register(self.info))
    }

    /// The registration is answered: the client enters its rooms, or its user has too many connections. Until then
    /// nothing is sent, and no room knows the client.
    package mutating func registered(_ isAllowed: Bool, at now: Instant) {
        guard case .registering(let number, let requests) = self.phase else { return }
        guard isAllowed else { return self.close(.connectionLimit) }
        let entries: [PendingConnect.Entry]
        // The reply to `connect` has no place for an error of one room.
        do throws(CommandError) { entries = try self.entries(requests) } catch { return self.close(.badRequest) }
        self.phase = .connecting(PendingConnect(number: number, remaining: Set(entries.map(\.request.channel))))
        for entry in entries {
            self.join(
                number, entry.request, entry.policy, grant: entry.grant, filter: entry.filter, isServerSide: true)
        }
        self.finishConnecting(now)
    }

    /// The rooms that the client may enter.
    /// - Throws: for an invalid filter.
    private func entries(_ requests: [PendingConnect.Request]) throws(CommandError) -> [PendingConnect.Entry] {
        var entries: [PendingConnect.Entry] = []
        for (grant, request) in requests {
            guard let policy = self.authority.policy(of: request.channel),
                grant == nil
                    ? self.permission(to: policy, request.channel) == nil : !self.isBanned(from: request.channel)
            else { continue }
            entries.append((grant, request, policy, try policy.filter(request)))
        }
        return entries
    }

    private mutating func connected(without channel: String) {
        guard case .connecting(var pending) = self.phase else { return }
        pending.remove(channel)
        self.phase = .connecting(pending)
    }

    private mutating func finishConnecting(_ now: Instant) {
        guard case .connecting(let pending) = self.phase, pending.remaining.isEmpty else { return }
        self.phase = .connected
        var result = Reply.ConnectResult()
        result.client = self.identifier
        result.version = self.settings.version
        result.session = self.settings.session
        result.node = self.settings.node
        result.data = self.grant.data
        result.expiry = Reply.Expiry(until: self.grant.expiry, now)
        let (sendsPings, interval) = (self.settings.sendsPings, self.settings.pingInterval)
        if sendsPings { self.nextPing = now.elapsed + interval }
        result.pingInterval = sendsPings ? UInt32(clamping: max(1, interval.components.seconds)) : 0
        result.expectsPong = sendsPings && !self.onlyReceives
        result.subscriptions = pending.results.sorted { $0.key < $1.key }
        self.act(.send(.connect(number: pending.number, result)))
    }

    // MARK: Subscriptions

    private func isBanned(from channel: String) -> Bool {
        self.authority.isBanned(user: self.grant.user, from: channel)
    }

    /// Why the client may not become a member without a token; `nil` if it may.
    private func permission(to policy: RoomPolicy, _ channel: String) -> CommandError? {
        let isAllowed = policy.subscribe.allows(hasName: !self.grant.user.isEmpty, isMember: false, hasToken: false)
        return isAllowed && !self.isBanned(from: channel) ? nil : .permissionDenied
    }

    private mutating func subscribe(_ number: UInt32, _ request: Command.SubscribeRequest, _ now: Instant) {
        let channel = request.channel
        guard !channel.isEmpty, !request.wantsUnknownDeltas else { return self.close(.badRequest) }
        guard self.settings.allowsName(channel) else { return self.refuse(number, .badRequest) }
        guard self.subscriptions[channel] == nil else { return self.refuse(number, .alreadySubscribed) }
        guard self.subscriptions.count < self.settings.maximumSubscriptions else {
            return self.refuse(number, .limitExceeded)
        }
        guard let policy = self.authority.policy(of: channel) else { return self.refuse(number, .unknownChannel) }
        let filter: TagFilter?
        do throws(CommandError) { filter = try policy.filter(request) } catch { return self.refuse(number, error) }
        var grant: SubscriptionGrant?
        if request.token.isEmpty {
            if let error = self.permission(to: policy, channel) { return self.refuse(number, error) }
        } else {
            do throws(TokenRefusal) {
                grant = try self.authority.subscription(
                    token: request.token, user: self.grant.user, client: self.identifier, channel: channel,
                    now: now.unix)
            } catch {
                switch error {
                case .expired: return self.refuse(number, .tokenExpired)
                case .invalid, .missing: return self.refuse(number, .permissionDenied)
                case .foreign: return self.close(.invalidToken)
                }
            }
            if let expiry = grant?.expiry, expiry <= now.unix { return self.refuse(number, .expired) }
            guard policy.subscribe != .nobody, !self.isBanned(from: channel) else {
                return self.refuse(number, .permissionDenied)
            }
        }
        guard self.meters.allowsEntry(policy, at: now.elapsed) else { return self.refuse(number, .tooManyRequests) }
        self.join(number, request, policy, grant: grant, filter: filter, isServerSide: false)
    }

    private mutating func join(
        _ number: UInt32, _ request: Command.SubscribeRequest, _ policy: RoomPolicy, grant: SubscriptionGrant?,
        filter: TagFilter? = nil, isServerSide: Bool
    ) {
        var info = self.info
        info.channelInfo = grant?.info
        let isRecoverable = policy.recovery != .off && policy.keepsHistory
        let recovers = request.recovers && isRecoverable
        let join = Join(
            channel: request.channel, policy: policy, info: info, recovery: recovers ? request.position : nil,
            rejectsLoss: request.rejectsLoss && recovers && !isServerSide, recoveryLimit: self.settings.maximumRecovery,
            isPositioned: isRecoverable || request.wantsPosition && policy.keepsHistory, isRecoverable: isRecoverable,
            // What a filter leaves out would be missing from the differences.
            usesDeltas: request.wantsDeltas && policy.deltas == .fossil && !isServerSide && filter == nil,
            filter: filter)
        self.subscriptions[request.channel] = ClientSubscription(
            number: number, join: join, grant: grant, expiry: grant?.expiry, isServerSide: isServerSide,
            recovers: request.recovers)
        self.begin(.join(join))
    }

    /// A join is complete or refused.
    package mutating func joined(_ channel: String, _ result: Result<JoinResult, CommandError>, at now: Instant) {
        self.pendingCount -= 1
        self.finishJoin(channel, result, now)
        for command in self.deferred.removeValue(forKey: channel) ?? [] {
            self.pendingCount -= 1
            if !self.isClosed { self.perform(command.request, number: command.number, now) }
        }
    }

    private mutating func finishJoin(_ channel: String, _ result: Result<JoinResult, CommandError>, _ now: Instant) {
        guard !self.isClosed, var subscription = self.subscriptions[channel] else {
            if case .success = result { self.act(.leave(channel: channel)) }
            return
        }
        subscription.isComplete = true
        let result = self.leavingIfBanned(result, channel)
        switch result {
        case .success(let result):
            self.subscriptions[channel] = subscription
            if subscription.expiry != nil { self.findFirstExpiry() }
            let reply = subscription.reply(result, now)
            if case .connecting(var pending) = self.phase {
                pending.add(reply, of: channel, sizeLimit: self.settings.maximumRecoverySize)
                self.phase = .connecting(pending)
                self.finishConnecting(now)
            } else if subscription.isServerSide {
                for push in reply.pushes { self.act(.send(.push(channel: channel, push))) }
            } else {
                self.act(.send(.subscribe(number: subscription.number, reply)))
            }
        case .failure(let error):
            self.subscriptions[channel] = nil
            if case .connecting = self.phase {
                self.connected(without: channel)
                self.finishConnecting(now)
            } else if !subscription.isServerSide {
                self.refuse(subscription.number, error)
            }
        }
        if let code = subscription.endWhenComplete { self.unsubscribe(channel, code) }
    }

    /// A ban while a client joins finds it in the room too early.
    private mutating func leavingIfBanned(_ result: Result<JoinResult, CommandError>, _ channel: String)
        -> Result<JoinResult, CommandError>
    {
        guard case .success = result, self.isBanned(from: channel) else { return result }
        self.act(.leave(channel: channel))
        return .failure(.permissionDenied)
    }

    private mutating func unsubscribe(_ number: UInt32, _ channel: String) {
        guard !channel.isEmpty else { return self.close(.badRequest) }
        guard self.settings.allowsName(channel) else { return self.refuse(number, .badRequest) }
        self.leave(channel)
        self.act(.send(.unsubscribe(number: number)))
    }

    /// - Precondition: the join is complete, if there is one.
    private mutating func leave(_ channel: String) {
        guard let subscription = self.subscriptions.removeValue(forKey: channel) else { return }
        if subscription.expiry != nil { self.findFirstExpiry() }
        self.act(.leave(channel: channel))
    }

    /// The server ends a subscription. Its client hears of that after the reply that it is subscribed; before the reply
    /// to `connect` the subscription is only left out there.
    package mutating func unsubscribe(_ channel: String, _ code: UnsubscribeCode) {
        guard !self.isClosed, let subscription = self.subscriptions[channel] else { return }
        if subscription.isServerSide, let disconnect = code.disconnect { return self.close(disconnect) }
        guard subscription.isComplete else {
            self.subscriptions[channel]?.endWhenComplete = code
            return self.findFirstExpiry()
        }
        self.leave(channel)
        if self.isConnecting { return self.connected(without: channel) }
        self.act(.send(.push(channel: channel, .unsubscribe(code))))
    }

    /// The server subscribes the client, as its API asks.
    package mutating func subscribe(_ grant: SubscriptionGrant, recovering position: StreamPosition? = nil)
        -> CommandError?
    {
        guard case .connected = self.phase else { return .notAvailable }
        guard self.settings.allowsName(grant.channel) else { return .badRequest }
        guard let policy = self.authority.policy(of: grant.channel) else { return .unknownChannel }
        guard self.subscriptions[grant.channel] == nil else { return nil }
        guard !self.isBanned(from: grant.channel) else { return .permissionDenied }
        guard self.subscriptions.count < self.settings.maximumSubscriptions else { return .limitExceeded }
        var request = Command.SubscribeRequest(channel: grant.channel)
        if let position { (request.recovers, request.position) = (true, position) }
        self.join(0, request, policy, grant: grant, isServerSide: true)
        return nil
    }

    // MARK: Publishing and reading

    private mutating func publish(_ number: UInt32, _ channel: String, _ data: Payload, _ now: Instant) {
        guard !channel.isEmpty, !data.isEmpty else { return self.close(.badRequest) }
        guard self.settings.allowsName(channel) else { return self.refuse(number, .badRequest) }
        guard let policy = self.authority.policy(of: channel) else { return self.refuse(number, .unknownChannel) }
        guard self.mayPublish(in: channel, policy) else { return self.refuse(number, .permissionDenied) }
        guard data.bytes.count <= policy.maximumMessageSize else { return self.refuse(number, .limitExceeded) }
        guard self.meters.allowsPublication(policy, at: now.elapsed) else {
            return self.refuse(number, .tooManyRequests)
        }
        var info = self.info
        info.channelInfo = self.subscriptions[channel]?.grant?.info
        self.begin(.publish(number: number, channel: channel, data, info))
    }

    private func mayPublish(in channel: String, _ policy: RoomPolicy) -> Bool {
        let subscription = self.subscriptions[channel]
        if self.isBanned(from: channel) || self.authority.isMuted(user: self.grant.user, in: channel) { return false }
        return policy.publish.allows(
            hasName: !self.grant.user.isEmpty, isMember: subscription?.isComplete == true,
            hasToken: subscription?.grant?.mayPublish == true)
    }

    /// Refuses a command that reads what the room does not keep, or what this client may not read.
    private mutating func permitsReading(
        _ number: UInt32, _ channel: String, where isKept: (RoomPolicy) -> Bool
    ) -> Bool {
        if channel.isEmpty {
            self.close(.badRequest)
            return false
        }
        guard self.settings.allowsName(channel) else {
            self.refuse(number, .badRequest)
            return false
        }
        guard let policy = self.authority.policy(of: channel) else {
            self.refuse(number, .unknownChannel)
            return false
        }
        guard isKept(policy) else {
            self.refuse(number, .notAvailable)
            return false
        }
        let subscription = self.subscriptions[channel]
        let mayRead = policy.read.allows(
            hasName: !self.grant.user.isEmpty, isMember: subscription?.isComplete == true,
            hasToken: subscription?.grant != nil)
        if mayRead, !self.isBanned(from: channel) { return true }
        self.refuse(number, .permissionDenied)
        return false
    }

    // MARK: Tokens

    private mutating func refresh(_ number: UInt32, _ token: String, _ now: Instant) {
        guard !token.isEmpty else { return self.close(.badRequest) }
        let grant: ConnectionGrant
        do throws(TokenRefusal) {
            grant = try self.authority.connection(token: token, now: now.unix)
        } catch {
            // The client connects again with a newer token; after an error it would not.
            return self.close(error == .expired ? .expired : .invalidToken)
        }
        guard grant.user == self.grant.user else { return self.close(.invalidToken) }
        // By connecting again the client enters and leaves what the new token names.
        guard !self.subscriptions.differ(self.grant, renewed: grant) else { return self.close(.insufficientState) }
        if let expiry = grant.expiry, expiry <= now.unix { return self.refuse(number, .expired) }
        self.grant.expiry = grant.expiry
        self.grant.info = grant.info ?? self.grant.info
        self.grant.subscriptions = grant.subscriptions
        self.findFirstExpiry()
        let (version, expiry) = (self.settings.version, Reply.Expiry(until: grant.expiry, now))
        self.act(.send(.refresh(number: number, client: self.identifier, version: version, expiry)))
    }

    private mutating func refreshSubscription(_ number: UInt32, _ channel: String, _ token: String, _ now: Instant) {
        guard self.settings.allowsName(channel) else { return self.close(.badRequest) }
        guard self.subscriptions[channel]?.isComplete == true else { return self.refuse(number, .permissionDenied) }
        guard !token.isEmpty else { return self.refuse(number, .badRequest) }
        let grant: SubscriptionGrant
        do throws(TokenRefusal) {
            grant = try self.authority.subscription(
                token: token, user: self.grant.user, client: self.identifier, channel: channel, now: now.unix)
        } catch {
            return error == .expired ? self.refuse(number, .tokenExpired) : self.close(.invalidToken)
        }
        if let expiry = grant.expiry, expiry < now.unix { return self.refuse(number, .expired) }
        self.subscriptions[channel]?.expiry = grant.expiry
        self.subscriptions[channel]?.grant = grant
        self.findFirstExpiry()
        self.act(.send(.subscriptionRefresh(number: number, Reply.Expiry(until: grant.expiry, now))))
    }

    /// The server gives the connection another expiry; `nil` ends it at once.
    package mutating func refresh(expiry: UInt64?, isExpired: Bool, at now: Instant) {
        guard !self.isClosed else { return }
        if isExpired || expiry.map({ $0 <= now.unix }) == true { return self.close(.expired) }
        self.grant.expiry = expiry
        self.findFirstExpiry()
        // The reply to `connect` has it.
        guard self.isConnected else { return }
        self.act(.send(.push(channel: "", .refresh(Reply.Expiry(until: expiry, now)))))
    }

    // MARK: Time

    /// When to call `timerFired`, as `elapsed`: within a minute if something expires, as the wall clock may be set.
    package func deadline(at now: Instant) -> Duration? {
        switch self.phase {
        case .closed: return nil
        case .new(let deadline): return deadline
        case .registering, .connecting, .connected: break
        }
        let expiry = self.firstExpiry.map { expiry -> Duration in
            let end = self.settings.end(of: expiry)
            return now.elapsed + .seconds(Int64(clamping: min(end > now.unix ? end - now.unix : 0, 60)))
        }
        return [self.nextPing, self.pongDeadline, expiry].compactMap(\.self).min()
    }

    private mutating func findFirstExpiry() {
        self.firstExpiry = self.subscriptions.values.reduce(self.grant.expiry) { first, subscription in
            guard let expiry = subscription.expiry, subscription.endWhenComplete == nil else { return first }
            return min(first ?? .max, expiry)
        }
    }

    /// - Parameter mayAnswerLater: whether an answer to a ping is not late, as it is not read, or the ping has not arrived.
    package mutating func timerFired(at now: Instant, mayAnswerLater: Bool = false) {
        if case .new(let deadline) = self.phase {
            if deadline <= now.elapsed { self.close(.stale) }
            return
        }
        guard !self.isClosed else { return }
        if mayAnswerLater, self.pongDeadline != nil { self.pongDeadline = now.elapsed + self.settings.pongTimeout }
        if let deadline = self.pongDeadline, deadline <= now.elapsed { return self.close(.noPong) }
        if let expiry = self.grant.expiry, self.settings.end(of: expiry) <= now.unix { return self.close(.expired) }
        for (channel, subscription) in self.subscriptions.sorted(by: { $0.key < $1.key }) {
            guard let expiry = subscription.expiry, self.settings.end(of: expiry) <= now.unix else { continue }
            self.unsubscribe(channel, .expired)
        }
        if let due = self.nextPing, due <= now.elapsed {
            self.act(.send(.ping))
            self.nextPing = now.elapsed + self.settings.pingInterval
            if !self.onlyReceives { self.pongDeadline = now.elapsed + self.settings.pongTimeout }
        }
    }

    // MARK: The end

    /// The server ends the connection.
    package mutating func close(_ disconnect: Disconnect) {
        guard !self.isClosed else { return }
        self.leaveAll()
        self.act(.close(disconnect))
    }

    /// The connection is over.
    package mutating func connectionEnded() { if !self.isClosed { self.leaveAll() } }

    private mutating func leaveAll() {
        for (channel, one) in self.subscriptions.sorted(by: { $0.key < $1.key }) where one.isComplete {
            self.act(.leave(channel: channel))
        }
        self.subscriptions = [:]
        self.deferred = [:]
        self.phase = .closed
    }
}
