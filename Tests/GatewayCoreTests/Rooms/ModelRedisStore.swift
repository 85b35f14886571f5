import Cluster
import GatewayCore

/// What a `ModelRedis` keeps, and the scripts of the rooms as their contracts have them. A value: a copy is an older state.
///
/// Time is in milliseconds. Script texts are not looked at, so that their errors are not repeated here.
struct ModelRedisStore {
    struct Entry: Equatable {
        let offset: Int
        let envelope: String
    }

    private struct Meta {
        var epoch: String
        /// Of the server, when the epoch began.
        var run: String
        var offset = 0
        /// After which the epoch began.
        var epochStart = 0
        var removals = 0
        var expiry: Int?
    }

    private struct Stream {
        var entries: [Entry] = []
        /// Offset of the newest entry, removed ones included.
        var last = 0
        var expiry: Int?
    }

    private struct Listed {
        /// Instants at which clients expire.
        var expiries: [String: Int] = [:]
        var infos: [String: String] = [:]
    }

    /// A message for a channel.
    struct Message: Equatable {
        let channel: String
        let payload: String
    }

    init(run: String) {
        self.run = run
    }

    /// What one script did.
    struct Outcome {
        var reply: ModelReply
        var message: Message?
        /// The publication that it appended to a stream, or sent without one: then its epoch is empty.
        var stored: Stored?
    }

    /// A publication when it was stored.
    struct Stored {
        let channel: String
        let epoch: String
        let offset: Int
        let envelope: String
    }

    /// Identifier of this run of the server.
    var run: String
    /// Whether the server has an append-only file, and was never a replica.
    var isDurable = false
    private var metas: [String: Meta] = [:]
    private var streams: [String: Stream] = [:]
    private var results: [String: (offset: Int, epoch: String, expiry: Int)] = [:]
    private var listed: [String: Listed] = [:]
    private var users: [String: [String: Int]] = [:]

    /// The run as streams have it.
    private var runOfStreams: String { self.isDurable ? "\(self.run)+" : self.run }

    mutating func forgetKeys() {
        let isDurable = self.isDurable
        self = ModelRedisStore(run: self.run)
        self.isDurable = isDurable
    }

    /// The stream with this meta key: its epoch and entries.
    func stream(meta: String, _ stream: String) -> (epoch: String, entries: [Entry])? {
        self.metas[meta].map { ($0.epoch, self.streams[stream]?.entries ?? []) }
    }

    /// Clients in the room with this presence key that have not expired.
    func listedCount(_ key: String, now: Int) -> Int { self.listed[key]?.expiries.values.count { $0 > now } ?? 0 }

    /// Whether Redis has a key of this name.
    func has(_ key: String) -> Bool {
        let listed = key.replacingSuffix(":expiry", with: ":presence")
        return self.metas[key] != nil || self.streams[key] != nil || self.results[key] != nil
            || self.listed[listed]?.infos.isEmpty == false || self.users[key]?.isEmpty == false
    }

    var entryCount: Int { self.streams.values.reduce(0) { $0 + $1.entries.count } }

    /// Envelopes in all streams.
    var kept: Set<String> { Set(self.streams.values.flatMap { $0.entries.map(\.envelope) }) }

    /// - Parameters:
    ///   - digest: of a script of the rooms.
    ///   - now: in milliseconds.
    /// - Returns: `nil` for another script.
    mutating func run(_ digest: String, keys: [String], _ arguments: [String], now: Int) -> Outcome? {
        self.expire(now)
        switch digest {
        case RoomScripts.publish.digest: return self.publish(keys, arguments, now)
        case RoomScripts.read.digest: return Outcome(reply: self.read(keys, arguments, now))
        case RoomScripts.startNewEpoch.digest: return Outcome(reply: self.startNewEpoch(keys, arguments))
        case RoomScripts.remove.digest: return self.remove(keys, arguments)
        case RoomScripts.enter.digest: return self.enter(keys, arguments, now)
        case RoomScripts.leave.digest:
            self.listed[keys[0]]?.expiries[arguments[0]] = nil
            self.listed[keys[0]]?.infos[arguments[0]] = nil
            return Outcome(reply: .integer(1), message: Self.unkept(arguments[1], on: arguments[2]))
        case RoomScripts.list.digest:
            return Outcome(reply: self.list(keys, arguments))
        case RoomScripts.register.digest: return Outcome(reply: self.register(keys, arguments, now))
        default: return nil
        }
    }

    /// Offsets of the stream's entries that last beyond `now`; `nil` if its epoch is another one, or will be with the next
    /// script because it belongs to another run of the server.
    func offsets(of stream: String, meta: String, epoch: String, now: Int) -> [Int]? {
        guard let meta = self.metas[meta], meta.epoch == epoch, meta.run == self.runOfStreams else { return nil }
        guard let stream = self.streams[stream], stream.expiry.map({ $0 > now }) ?? true else { return [] }
        return stream.entries.map(\.offset)
    }

    func newestOffset(_ stream: String) -> Int { self.streams[stream]?.entries.last?.offset ?? 0 }

    /// Removes what has expired.
    mutating func expire(_ now: Int) {
        func isOver(_ expiry: Int?) -> Bool { expiry.map { $0 <= now } ?? false }
        self.metas = self.metas.filter { !isOver($0.value.expiry) }
        self.streams = self.streams.filter { !isOver($0.value.expiry) }
        self.results = self.results.filter { !isOver($0.value.expiry) }
        self.listed = self.listed.mapValues { listed in
            let expiries = listed.expiries.filter { !isOver($0.value) }
            return Listed(expiries: expiries, infos: listed.infos.filter { expiries[$0.key] != nil })
        }
        self.users = self.users.mapValues { $0.filter { !isOver($0.value) } }
    }

    private static func unkept(_ envelope: String, on channel: String) -> Message? {
        envelope.isEmpty ? nil : Message(channel: channel, payload: "0  \(envelope)")
    }

    // MARK: Streams

    private mutating func publish(_ keys: [String], _ arguments: [String], _ now: Int) -> Outcome {
        let lasting = Self.number(arguments[8])
        if lasting > 0, let once = keys.last, let former = self.results[once] {
            return Outcome(reply: .array([.integer(1), .blob("\(former.offset)"), .blob(former.epoch)]))
        }
        var (epoch, offset) = ("", 0)
        if Self.number(arguments[2]) > 0 {
            self.begin(keys, epoch: arguments[1], run: arguments[9], isComplete: arguments[10] == "1")
            _ = self.startNewEpoch(keys, [arguments[11], arguments[12], arguments[1]])
            (epoch, offset) = self.append(arguments[0], keys, newEpoch: arguments[1])
            self.trim(keys[1], count: Self.number(arguments[2]))
            self.streams[keys[1]]?.expiry = now + Self.number(arguments[4])
            self.metas[keys[0]]?.expiry = now + Self.number(arguments[5])
        }
        if lasting > 0, let once = keys.last { self.results[once] = (offset, epoch, now + lasting) }
        return Outcome(
            reply: .array([.integer(0), .blob("\(offset)"), .blob(epoch)]),
            message: Message(channel: arguments[6], payload: "\(offset) \(epoch) \(arguments[0])"),
            stored: Stored(channel: arguments[6], epoch: epoch, offset: offset, envelope: arguments[0]))
    }

    private mutating func append(
        _ envelope: String, _ keys: [String], newEpoch: String
    ) -> (epoch: String, offset: Int) {
        var meta = self.metas[keys[0]] ?? Meta(epoch: newEpoch, run: self.runOfStreams)
        meta.offset += 1
        if let last = self.streams[keys[1]]?.last, last >= meta.offset {
            self.begin(newEpoch, keys)
            meta = Meta(epoch: newEpoch, run: self.runOfStreams, offset: 1)
        }
        let entry = Entry(offset: meta.offset, envelope: envelope)
        self.metas[keys[0]] = meta
        self.streams[keys[1], default: Stream()].entries.append(entry)
        self.streams[keys[1]]?.last = meta.offset
        return (meta.epoch, meta.offset)
    }

    private mutating func begin(_ epoch: String, _ keys: [String]) {
        self.metas[keys[0]] = Meta(epoch: epoch, run: self.runOfStreams)
        self.streams[keys[1]] = nil
    }

    /// Begins a stream if there is none, and another epoch if the stream's is of another run of the server.
    /// - Parameter isComplete: whether append-only files are.
    private mutating func begin(_ keys: [String], epoch: String, run known: String, isComplete: Bool) {
        guard let meta = self.metas[keys[0]] else { return self.begin(epoch, keys) }
        let run = self.runOfStreams
        guard meta.run != known, meta.run != run else { return }
        self.metas[keys[0]]?.run = run
        guard meta.run != self.run, !(isComplete && meta.run.hasSuffix("+") && run.hasSuffix("+")) else { return }
        self.metas[keys[0]]?.epoch = epoch
        self.metas[keys[0]]?.epochStart = meta.offset
    }

    /// Histories of the simulation are bounded by their number alone.
    private mutating func trim(_ key: String, count: Int) {
        guard let stream = self.streams[key], stream.entries.count > count else { return }
        self.streams[key]?.entries.removeFirst(stream.entries.count - count)
    }

    private mutating func read(_ keys: [String], _ arguments: [String], _ now: Int) -> ModelReply {
        self.begin(keys, epoch: arguments[4], run: arguments[7], isComplete: arguments[8] == "1")
        guard var meta = self.metas[keys[0]] else { return .error("ERR no stream") }
        meta.expiry = max(meta.expiry ?? 0, now + Self.number(arguments[5]))
        self.metas[keys[0]] = meta
        let isOther = !arguments[6].isEmpty && arguments[6] != meta.epoch
        let lowest = isOther ? 0 : Self.offset(arguments[0], isLowest: true)
        let highest = Self.offset(arguments[1], isLowest: false)
        var entries = (self.streams[keys[1]]?.entries ?? []).filter { $0.offset >= lowest && $0.offset <= highest }
        if arguments[3] == "1" { entries.reverse() }
        let (page, isFull) = Self.page(entries.prefix(Self.number(arguments[2])), size: Self.number(arguments[9]))
        let listed = page.map { entry -> ModelReply in
            .array([.blob("\(entry.offset)-0"), .array([.blob("d"), .blob(entry.envelope)])])
        }
        return .array([
            .blob(meta.epoch), .blob("\(meta.offset)"), .array(listed), .blob("\(meta.removals)"),
            .integer(isFull ? 1 : 0), .blob(self.streams[keys[1]]?.entries.first.map { "\($0.offset)-0" } ?? ""),
            .integer(self.streams[keys[1]]?.expiry.map { $0 - now } ?? -2), .blob("\(meta.epochStart)"),
        ])
    }

    /// The first entries that cost at most `size` together, at least one.
    private static func page(_ entries: ArraySlice<Entry>, size: Int) -> (entries: ArraySlice<Entry>, isFull: Bool) {
        var rest = size
        for (index, entry) in zip(entries.indices, entries) {
            rest -= entry.envelope.unicodeScalars.count + 1 + RoomScripts.entryOverhead
            if rest < 0, index > entries.startIndex { return (entries[..<index], true) }
        }
        return (entries, false)
    }

    private mutating func startNewEpoch(_ keys: [String], _ arguments: [String]) -> ModelReply {
        guard let meta = self.metas[keys[0]], meta.epoch == arguments[0], meta.offset < Self.number(arguments[1]) else {
            return .integer(0)
        }
        self.metas[keys[0]]?.epoch = arguments[2]
        self.metas[keys[0]]?.epochStart = meta.offset
        return .integer(1)
    }

    private mutating func remove(_ keys: [String], _ arguments: [String]) -> Outcome {
        let entries = self.streams[keys[1]]?.entries ?? []
        let rest = arguments[0] == "0" ? [] : entries.filter { "\($0.offset)" != arguments[0] }
        let count = entries.count - rest.count
        if arguments[0] == "0" { self.streams[keys[1]] = nil } else { self.streams[keys[1]]?.entries = rest }
        if count > 0 { self.metas[keys[0]]?.removals += 1 }
        return Outcome(
            reply: .integer(count), message: count > 0 ? Self.unkept(arguments[1], on: arguments[2]) : nil)
    }

    /// The meta key lasts longer, if it is there.
    mutating func extend(_ key: String, by milliseconds: Int, now: Int) -> Bool {
        guard let expiry = self.metas[key]?.expiry, expiry < now + milliseconds else { return false }
        self.metas[key]?.expiry = now + milliseconds
        return true
    }

    // MARK: Presence and users

    private mutating func enter(_ keys: [String], _ arguments: [String], _ now: Int) -> Outcome {
        var listed = self.listed[keys[0]] ?? Listed()
        for index in stride(from: 4, to: arguments.count - 1, by: 2) {
            listed.expiries[arguments[index]] = now + Self.number(arguments[0])
            listed.infos[arguments[index]] = arguments[index + 1]
        }
        self.listed[keys[0]] = listed
        return Outcome(reply: .integer(1), message: Self.unkept(arguments[1], on: arguments[2]))
    }

    /// A cursor is the number of clients before the page. Like Redis, it may repeat some.
    private func list(_ keys: [String], _ arguments: [String]) -> ModelReply {
        let infos = (self.listed[keys[0]]?.infos ?? [:]).sorted { $0.key < $1.key }.map(\.value)
        var position = max(0, Self.number(arguments[0]) - 1)
        var (rest, page) = (Self.number(arguments[1]), [ModelReply]())
        while position < infos.count, rest > 0 || page.count < 2 {
            rest -= infos[position].unicodeScalars.count + RoomScripts.entryOverhead
            page.append(.blob(infos[position]))
            position += 1
        }
        return .array([.blob(position < infos.count ? "\(position)" : "0"), .array(page)])
    }

    private mutating func register(_ keys: [String], _ arguments: [String], _ now: Int) -> ModelReply {
        for client in arguments.dropFirst(2) {
            let clients = self.users[keys[0]] ?? [:]
            if clients[client] == nil, clients.count >= Self.number(arguments[0]) { return .integer(0) }
            self.users[keys[0], default: [:]][client] = now + Self.number(arguments[1])
        }
        return .integer(1)
    }

    mutating func removeClient(_ client: String, user: String) -> Bool {
        self.users[user]?.removeValue(forKey: client) != nil
    }

    // MARK: Numbers

    private static func number(_ text: String) -> Int { Int(text) ?? 0 }

    /// Of a stream's identifier as a bound, which `(` excludes.
    private static func offset(_ text: String, isLowest: Bool) -> Int {
        switch text {
        case "-": return 0
        case "+": return .max
        default:
            let isExcluded = text.hasPrefix("(")
            let offset = Int(text.dropFirst(isExcluded ? 1 : 0).prefix { $0 != "-" }) ?? 0
            return isExcluded ? offset + (isLowest ? 1 : -1) : offset
        }
    }
}

extension String {
    fileprivate func replacingSuffix(_ suffix: String, with other: String) -> String {
        self.hasSuffix(suffix) ? self.dropLast(suffix.count) + other : self
    }
}

/// A reply in RESP3. Texts have a byte in each Unicode scalar.
enum ModelReply {
    case simple(String)
    case error(String)
    case integer(Int)
    case blob(String)
    case array([ModelReply])
    case map([(String, ModelReply)])
    case push([ModelReply])

    func append(to bytes: inout [UInt8]) {
        switch self {
        case .simple(let text): bytes += "+\(text)\r\n".utf8
        case .error(let text): bytes += "-\(text)\r\n".utf8
        case .integer(let number): bytes += ":\(number)\r\n".utf8
        case .blob(let text):
            let content = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
            bytes += "$\(content.count)\r\n".utf8
            bytes += content
            bytes += "\r\n".utf8
        case .array(let elements): Self.append("*", elements, to: &bytes)
        case .push(let elements): Self.append(">", elements, to: &bytes)
        case .map(let entries):
            bytes += "%\(entries.count)\r\n".utf8
            for (key, value) in entries {
                ModelReply.blob(key).append(to: &bytes)
                value.append(to: &bytes)
            }
        }
    }

    private static func append(_ kind: String, _ elements: [ModelReply], to bytes: inout [UInt8]) {
        bytes += "\(kind)\(elements.count)\r\n".utf8
        for element in elements { element.append(to: &bytes) }
    }
}
