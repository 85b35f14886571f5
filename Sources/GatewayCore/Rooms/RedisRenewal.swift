import Cluster
import DequeModule
import RedisEngine
import Rooms
import StreamTransport

/// Renews what expires in Redis when its node is gone: listed clients, counted connections of users, and epochs of rooms.
///
/// A round renews everything. Its commands are spread over most of the interval, and few are unanswered at a time, so that
/// they neither delay publications nor reach the limits of the connection. A command that was refused nevertheless is
/// repeated, in the next round at the latest.
///
/// Confined to its loop.
final class RedisRenewal {
    /// Clients of one command, and the size of what others see of them, in bytes.
    private static let batchCount = 64
    private static let batchSize = 64 << 10
    private static let stepInterval: Duration = .milliseconds(50)
    /// Works that one step performs at least.
    private static let smallestStep = 64
    /// Commands that are unanswered, and their size in bytes.
    private static let unansweredLimit = 512
    private static let unansweredSizeLimit = 1 << 20
    /// Bytes of a command beside what others see of its clients.
    private static let overhead = 256

    private enum Work {
        case room(SharedRoom, RoomKeys)
        case epoch(SharedRoom, RoomKeys)
        /// Clients of a room.
        case clients(ArraySlice<String>, SharedRoom, RoomKeys)
        case user(String)
        /// Clients of a user.
        case connections(ArraySlice<String>, user: String)
    }

    private let client: RedisClient
    private let presence: RedisPresence
    private let interval: Duration
    private let limit: Int
    private let timer = LoopTimer()
    private var timerIsArmed = false
    private var works: Deque<Work> = []
    /// When the works of the round should be done.
    private var end = MonotonicInstant(nanoseconds: 0)
    private var next: Duration = .zero
    /// Whether the next round does not take its time, because Redis may lack everything.
    private var isUrgent = true
    private var unansweredCount = 0
    private var unansweredSize = 0
    /// A step ended because of the limits; answers continue it.
    private var isFull = false

    /// - Parameter interval: from the beginning of one round to the next, a third of the time after which things expire.
    init(_ client: RedisClient, _ presence: RedisPresence, interval: Duration) {
        self.client = client
        self.presence = presence
        self.interval = interval
        self.limit = max(1, min(Self.unansweredLimit, client.settings.maximumCommands / 8))
    }

    private var loop: Loop { self.client.loop }

    // MARK: Rounds

    /// Whether the next round should begin.
    func isDue(_ now: Duration) -> Bool { now >= self.next }

    func redisBecameReady() {
        self.next = .zero
        self.isUrgent = true
    }

    /// Begins a round. What is left of the former one comes first.
    func begin(_ rooms: [(SharedRoom, RoomKeys)], now: Duration) {
        self.next = now + self.interval
        self.end = self.loop.now.advanced(by: self.isUrgent ? .zero : self.interval * 3 / 4)
        self.isUrgent = false
        var (leftRooms, leftUsers): (Set<String>, Set<String>) = ([], [])
        for work in self.works {
            switch work {
            case .room(let room, _), .epoch(let room, _), .clients(_, let room, _): leftRooms.insert(room.name)
            case .user(let user), .connections(_, let user): leftUsers.insert(user)
            }
        }
        for (room, keys) in rooms where !leftRooms.contains(room.name) { self.works.append(.room(room, keys)) }
        for user in self.presence.users where !leftUsers.contains(user) { self.works.append(.user(user)) }
        self.step()
    }

    /// Redis is lost, or the gateway ends.
    func cancel() {
        self.works = []
        self.loop.disarm(self.timer)
        self.timerIsArmed = false
    }

    /// Performs the share of the works that belongs to this step.
    private func step() {
        let stepsLeft = max(1, Int(self.loop.now.duration(to: self.end) / Self.stepInterval))
        var share = max(Self.smallestStep, (self.works.count + stepsLeft - 1) / stepsLeft)
        self.isFull = false
        while share > 0, !self.isFull, let work = self.works.popFirst() {
            self.perform(work)
            share -= 1
            self.isFull = self.unansweredCount >= self.limit || self.unansweredSize >= Self.unansweredSizeLimit
        }
        self.armTimer()
    }

    private func armTimer() {
        guard !self.works.isEmpty, !self.timerIsArmed else { return }
        self.timerIsArmed = true
        self.loop.arm(self.timer, after: Self.stepInterval, target: self)
    }

    // MARK: Works

    private func perform(_ work: Work) {
        switch work {
        case .room(let room, let keys):
            if room.policy.keepsHistory { self.renewEpoch(room, keys) }
            self.renew(room.listedClients[...], of: room, keys)
        case .epoch(let room, let keys): self.renewEpoch(room, keys)
        case .clients(let clients, let room, let keys): self.renew(clients, of: room, keys)
        case .user(let user): self.renew(Array(self.presence.clients(of: user))[...], of: user)
        case .connections(let clients, let user): self.renew(clients, of: user)
        }
    }

    private func renewEpoch(_ room: SharedRoom, _ keys: RoomKeys) {
        let command = RedisCommand("PEXPIRE", .bytes(keys.meta), RedisHistory.metaTime(room.policy), "GT")
        self.client.perform(command, key: keys.meta, self.completion(of: .epoch(room, keys), size: Self.overhead))
    }

    /// Renews the first of the clients that are still listed. The others remain to be done.
    private func renew(_ clients: ArraySlice<String>, of room: SharedRoom, _ keys: RoomKeys) {
        let batch = clients.prefix(Self.batchCount)
        var infos: [ClientInfo] = []
        var encoded: [(client: String, info: [UInt8])] = []
        var size = 0
        var rest = clients.dropFirst(batch.count)
        for info in room.listed(among: batch) {
            let bytes = RoomEnvelope.encoded(info)
            if size > 0, size + bytes.count > Self.batchSize, let index = batch.firstIndex(of: info.client) {
                rest = clients[index...]
                break
            }
            size += bytes.count
            infos.append(info)
            encoded.append((info.client, bytes))
        }
        if !rest.isEmpty { self.works.append(.clients(rest, room, keys)) }
        guard !infos.isEmpty else { return }
        let work = Work.clients(clients[..<rest.startIndex], room, keys)
        let completion = self.completion(of: work, size: size + Self.overhead)
        self.presence.list(encoded, in: keys) { [weak self] result in
            completion(result)
            // One that left meanwhile on another loop, with a connection to Redis of its own, may be listed again.
            for client in room.unlisted(among: infos) { self?.presence.remove(client, in: keys, telling: []) }
        }
    }

    /// Renews the first of the clients that are still connected. The others remain to be done.
    private func renew(_ clients: ArraySlice<String>, of user: String) {
        let batch = clients.prefix(Self.batchCount)
        let rest = clients.dropFirst(batch.count)
        if !rest.isEmpty { self.works.append(.connections(rest, user: user)) }
        let registered = self.presence.clients(of: user)
        let connected = batch.filter { registered.contains($0) }
        guard !connected.isEmpty else { return }
        let completion = self.completion(of: .connections(batch, user: user), size: Self.overhead)
        self.presence.renew(connected, of: user, completion)
    }

    /// Counts a command that is about to be sent.
    private func completion(of work: Work, size: Int) -> RedisCompletion {
        self.unansweredCount += 1
        self.unansweredSize += size
        return { [weak self] result in
            guard let self else { return }
            self.unansweredCount -= 1
            self.unansweredSize -= size
            // After the connection's loss, everything is renewed.
            if case .failure(.notSent) = result, self.client.isReady {
                self.works.append(work)
                // It would be refused again now.
                self.isFull = false
            }
            guard self.isFull, self.unansweredCount <= self.limit / 2,
                self.unansweredSize <= Self.unansweredSizeLimit / 2
            else { return self.armTimer() }
            self.step()
        }
    }
}

extension RedisRenewal: TimerTarget {
    func timerFired(_ timer: LoopTimer) {
        self.timerIsArmed = false
        self.step()
    }
}
