import Foundation
import Rooms
import TestSupport

/// One user's program: connects to some node, subscribes again to what it has lost, and notes what it receives and whether
/// that keeps the promises of the protocol.
final class ClusterClient {
    /// A publication that the program has received.
    struct Received: Equatable {
        let epoch: String
        let offset: Int
        let number: Int
    }

    /// How the program is connected. By events and lines it only receives.
    enum Transport: String, CaseIterable {
        case webSocket, events, lines
    }

    private enum Request {
        case connect
        case subscribe(String)
        case publish(Int)
        case presence(String)
        case presenceCounts(String)
        case history
    }

    let name: Int
    let transport: Transport
    private let rooms: [String]
    /// Of the rooms; `off` for rooms without a history.
    private let recovery: RoomPolicy.Recovery
    /// Named by a field of the request.
    var user: String?
    private var peer: RawWebSocketPeer?
    private var stream: ClusterStream?
    /// Of the last event that had one.
    private var lastEventID: String?
    private var framesRead = 0
    private var lastNumber = 0
    private var requests: [Int: Request] = [:]
    /// Rooms with a subscription, or a command for one, on this connection.
    private var requested: Set<String> = []
    private(set) var subscribed: Set<String> = []
    /// Rooms that did not have what the program misses, at some time since it asked for them: a node may have decided then.
    private var lacking: Set<String> = []
    private(set) var positions: [String: (epoch: String, offset: Int)] = [:]
    private(set) var received: [String: [Received]] = [:]
    /// Where the publications that must be complete begin: indices in `received`.
    private(set) var restarts: [String: [Int]] = [:]
    private(set) var acknowledged: Set<Int> = []
    /// Number of clients that a room listed when it was last asked.
    private(set) var listed: [String: Int] = [:]
    /// The same, when it was last asked for the number alone.
    private(set) var counted: [String: Int] = [:]
    /// Offsets of a part of a history, and of its position, for each reply.
    private(set) var histories: [(offsets: [Int], newest: Int)] = []
    /// Codes of the errors that answered such requests.
    private(set) var presenceErrors: [Int] = []
    private(set) var counts: [String: Int] = [:]
    private(set) var complaints: [String] = []
    /// What Redis knows of a room.
    private let redis: ModelRedis
    /// Offsets of a room's publications that its filter matches; `nil` for a program that gets all.
    var wanted: ((_ room: String, _ epoch: String) -> Set<Int>)?
    /// A filter by tags, as it sends it.
    static let filter = #"{"key":"parity","cmp":"eq","val":"odd"}"#

    /// - Parameter positions: that the program has from an earlier run.
    init(
        name: Int, transport: Transport = .webSocket, rooms: [String],
        positions: [String: (epoch: String, offset: Int)] = [:], recovery: RoomPolicy.Recovery = .stream,
        redis: ModelRedis
    ) {
        self.name = name
        self.transport = transport
        self.rooms = rooms
        self.recovery = recovery
        self.positions = positions
        self.redis = redis
    }

    var isConnected: Bool { self.peer != nil || self.stream != nil }
    var isInAllRooms: Bool { self.subscribed.count == self.rooms.count }

    /// Whether the room's last reply was that not all up to this position could be recovered, and nothing came since.
    func isToldOfGap(in room: String, upTo offset: Int?) -> Bool {
        self.restarts[room]?.last == (self.received[room]?.count ?? 0) && self.positions[room]?.offset == offset
    }

    /// Whether the program has all up to this position that it wants.
    func hasAllWanted(in room: String, upTo offset: Int?) -> Bool {
        guard let own = self.positions[room], let offset else { return false }
        return self.skips(to: offset + 1, after: own, in: room)
    }

    /// Whether there is nothing for the program between its position and this offset: it does not want it, or it was
    /// removed.
    private func skips(to offset: Int, after own: (epoch: String, offset: Int), in room: String) -> Bool {
        guard offset != own.offset + 1 else { return true }
        guard offset > own.offset else { return false }
        let missing = Set(own.offset + 1..<offset).subtracting(self.redis.removedOffsets(of: room))
        return self.wanted?(room, own.epoch).isDisjoint(with: missing) ?? missing.isEmpty
    }

    /// Whether the first publication that the program misses was dropped, or removed: if it was the oldest of the history,
    /// that cannot be told from its being dropped.
    private func lacksNext(after own: (epoch: String, offset: Int), in room: String) -> Bool {
        self.redis.removedOffsets(of: room).contains(own.offset + 1)
            || self.redis.mayHaveDropped((own.epoch, own.offset + 1), of: room)
    }

    /// Notes which of the rooms that have not answered yet lack what the program misses.
    private func noteLacking() {
        for room in self.rooms where self.requested.contains(room) && !self.subscribed.contains(room) {
            let lacks =
                switch self.recovery {
                case .off: true
                case .stream: self.positions[room].map { self.lacksNext(after: $0, in: room) } ?? false
                case .cache: self.redis.stream(of: room)?.entries.isEmpty ?? true
                }
            if lacks { self.lacking.insert(room) }
        }
    }

    private func complain(_ text: String) { self.complaints.append("client \(self.name): \(text)") }
    private func count(_ name: String, _ number: Int = 1) { self.counts[name, default: 0] += number }

    // MARK: Acting

    /// Begins a connection: sends the request and the first commands.
    func connect(_ peer: RawWebSocketPeer) {
        self.lastNumber = 1
        self.requests = [1: .connect]
        let commands = [#"{"id":1,"connect":{}}"#] + self.rooms.map { self.subscription(to: $0) }
        self.peer = peer
        let field = self.user.map { "X-User: \($0)\r\n" } ?? ""
        peer.peer.send(RawWebSocketPeer.request(to: "/rooms").replacing("Origin:", with: "\(field)Origin:"))
        peer.send(1, commands.joined(separator: "\n"))
        self.framesRead = 0
        self.count("connects")
    }

    /// The same for a program that only receives.
    func connect(receiving peer: ScriptedPeer) {
        let isEvents = self.transport == .events
        let stream = ClusterStream(peer, isEvents: isEvents)
        self.stream = stream
        self.requested = Set(self.rooms)
        let subscriptions = self.rooms.map { room in
            // A browser makes the same request each time.
            let (epoch, offset) = (isEvents ? nil : self.positions[room]) ?? ("", 0)
            return #""\#(room)":{\#(self.request(at: epoch, offset))}"#
        }
        stream.request(subscriptions, lastEventID: isEvents ? self.lastEventID : nil)
        self.count("connects")
    }

    /// Members of a subscription.
    private func request(at epoch: String, _ offset: Int) -> String {
        let filter = self.wanted == nil ? "" : #","tf":"# + Self.filter
        return #""recover":true,"offset":\#(offset),"epoch":"\#(epoch)"\#(filter)"#
    }

    private func subscription(to room: String) -> String {
        self.lastNumber += 1
        self.requests[self.lastNumber] = .subscribe(room)
        self.requested.insert(room)
        let (epoch, offset) = self.positions[room] ?? ("", 0)
        let members = self.request(at: epoch, offset)
        return #"{"id":\#(self.lastNumber),"subscribe":{"channel":"\#(room)",\#(members)}}"#
    }

    /// - Returns: whether the program has a connection to publish on.
    func publish(_ number: Int, in room: String) -> Bool {
        guard let peer = self.peer, peer.hasHead else { return false }
        self.lastNumber += 1
        self.requests[self.lastNumber] = .publish(number)
        peer.send(1, #"{"id":\#(self.lastNumber),"publish":{"channel":"\#(room)","data":{"n":\#(number)}}}"#)
        return true
    }

    /// Asks all rooms for their clients.
    func askForPresence() {
        for room in self.rooms {
            self.lastNumber += 1
            self.requests[self.lastNumber] = .presence(room)
            self.peer?.send(1, #"{"id":\#(self.lastNumber),"presence":{"channel":"\#(room)"}}"#)
        }
    }

    func askForCounts(in room: String) {
        self.lastNumber += 1
        self.requests[self.lastNumber] = .presenceCounts(room)
        self.peer?.send(1, #"{"id":\#(self.lastNumber),"presence_stats":{"channel":"\#(room)"}}"#)
    }

    /// Asks for the oldest publications of a room.
    func askForHistory(of room: String, limit: Int) {
        self.lastNumber += 1
        self.requests[self.lastNumber] = .history
        self.peer?.send(1, #"{"id":\#(self.lastNumber),"history":{"channel":"\#(room)","limit":\#(limit)}}"#)
    }

    /// Subscribes again to the rooms that the server has ended or refused. A program that only receives ends its connection.
    func resubscribe() {
        let missing = self.rooms.filter { !self.requested.contains($0) }
        guard !missing.isEmpty else { return }
        if self.stream != nil { return self.vanish() }
        guard let peer = self.peer, peer.hasHead else { return }
        self.count("resubscriptions", missing.count)
        peer.send(1, missing.map { self.subscription(to: $0) }.joined(separator: "\n"))
    }

    /// Ends the connection of a program that is in all its rooms.
    func leave() {
        if !self.isInAllRooms { self.complain("is in \(self.subscribed) only") }
        self.vanish()
    }

    /// What the program has read before the loss counts as received.
    func vanish() {
        self.read()
        self.peer?.peer.reset()
        self.stream?.reset()
        self.forgetConnection()
    }

    private func forgetConnection() {
        (self.peer, self.stream) = (nil, nil)
        self.requests = [:]
        self.requested = []
        self.subscribed = []
        self.lacking = []
    }

    // MARK: Reading

    func read() {
        self.noteLacking()
        if let stream = self.stream { return self.read(stream) }
        guard let peer = self.peer else { return }
        if peer.readHead() {
            let frames = peer.frames
            for frame in frames.dropFirst(self.framesRead) where frame.opcode == 1 {
                for line in frame.payload.split(separator: 0x0A) { self.read(Data(line), peer) }
            }
            self.framesRead = frames.count
        }
        let isOver = peer.peer.sawEnd || peer.peer.failure != nil || peer.peer.isClosed
        guard isOver || peer.hasHead && peer.close != nil else { return }
        if let close = peer.close, close.count > 2 {
            self.count("closed by the server: \(String(decoding: close.dropFirst(2), as: UTF8.self))")
        }
        peer.peer.close()
        self.forgetConnection()
    }

    private func read(_ stream: ClusterStream) {
        do {
            for message in try stream.messages() { try self.read(message) }
        } catch {
            self.complain("cannot read its response: \(error)")
        }
        guard stream.isOver else { return }
        stream.close()
        self.forgetConnection()
    }

    private func read(_ message: ClusterStream.Message) throws {
        guard let push = try JSONSerialization.jsonObject(with: message.data) as? [String: Any] else {
            return self.complain("no message: \(String(decoding: message.data, as: UTF8.self))")
        }
        if let result = push["connect"] as? [String: Any] {
            self.count("replies to connect")
            let rooms = result["subs"] as? [String: [String: Any]] ?? [:]
            self.requested = Set(rooms.keys)
            for (room, result) in rooms.sorted(by: { $0.key < $1.key }) { self.joined(room, result) }
        } else if let end = push["disconnect"] as? [String: Any] {
            self.count("\(self.transport) ended by the server: \(end["reason"] ?? "")")
        } else {
            self.read(push)
        }
        if self.transport == .events { self.readID(message.id) }
    }

    /// An id names what the program has got with its event: no more, and no less.
    private func readID(_ id: String?) {
        if let id { self.lastEventID = id }
        guard self.recovery != .off else {
            if let id { self.complain("has the id \(id) without a history") }
            return
        }
        let own = self.positions.mapValues {
            StreamPosition(offset: UInt64($0.offset), epoch: StreamPosition.epoch($0.epoch))
        }
        let named = self.lastEventID.map { EventPositions.positions(in: $0) } ?? [:]
        if named != own { self.complain("has \(own), and the id \(self.lastEventID ?? "none")") }
    }

    private func notePresenceError(_ reply: [String: Any]) {
        if let code = (reply["error"] as? [String: Any])?["code"] as? Int { self.presenceErrors.append(code) }
    }

    private func read(_ line: Data, _ peer: RawWebSocketPeer) {
        guard let reply = try? JSONSerialization.jsonObject(with: line) as? [String: Any] else {
            return self.complain("no JSON: \(String(decoding: line, as: UTF8.self))")
        }
        if reply.isEmpty { return peer.send(1, "{}") }
        if let push = reply["push"] as? [String: Any] { return self.read(push) }
        guard let id = reply["id"] as? Int, let request = self.requests.removeValue(forKey: id) else {
            return self.complain("an answer to no command: \(reply)")
        }
        switch request {
        case .connect:
            if reply["connect"] == nil { self.complain("not connected: \(reply)") }
            self.count("replies to connect")
        case .publish(let number):
            if reply["error"] == nil { self.acknowledged.insert(number) } else { self.count("refused") }
        case .presence(let room):
            let result = reply["presence"] as? [String: Any]
            self.listed[room] = (result?["presence"] as? [String: Any])?.count ?? 0
            self.notePresenceError(reply)
        case .presenceCounts(let room):
            self.counted[room] = (reply["presence_stats"] as? [String: Any])?["num_clients"] as? Int
            self.notePresenceError(reply)
        case .history:
            let result = reply["history"] as? [String: Any]
            let publications = result?["publications"] as? [[String: Any]] ?? []
            self.histories.append((publications.compactMap { $0["offset"] as? Int }, result?["offset"] as? Int ?? 0))
        case .subscribe(let room):
            if let result = reply["subscribe"] as? [String: Any] { return self.joined(room, result) }
            self.count("refused subscriptions")
            self.requested.remove(room)
            self.lacking.remove(room)
        }
    }

    private func read(_ push: [String: Any]) {
        guard let room = push["channel"] as? String else { return }
        guard self.subscribed.contains(room) else { return self.complain("push before the reply: \(push)") }
        if push["join"] != nil { self.count("joins") }
        if let publication = push["pub"] as? [String: Any] {
            self.note(publication, in: room)
        } else if push["unsubscribe"] != nil {
            self.count("interruptions")
            self.subscribed.remove(room)
            self.requested.remove(room)
        }
    }

    private func joined(_ room: String, _ result: [String: Any]) {
        self.subscribed.insert(room)
        defer { self.lacking.remove(room) }
        let epoch = result["epoch"] as? String ?? ""
        let offset = result["offset"] as? Int ?? 0
        let publications = (result["publications"] as? [Any] ?? []).compactMap { $0 as? [String: Any] }
        let own = self.positions[room]
        guard result["recovered"] as? Bool == true else {
            self.count("unrecovered")
            if self.mustRecover(from: own, to: (epoch, offset), in: room) {
                self.complain("\(room) at \(own.map { "\($0)" } ?? "no position") is not recovered: \(result)")
            }
            if !publications.isEmpty { self.complain("\(room) has publications but is not recovered: \(result)") }
            return self.restart(room, at: (epoch, offset))
        }
        if self.recovery == .off { self.complain("\(room) is recovered without a history: \(result)") }
        if self.recovery == .cache { return self.joinedCache(room, (epoch, offset), publications, after: own) }
        if let own, own.epoch != epoch, own.offset > 0 {
            self.complain("\(room) is recovered from \(own) to another epoch: \(result)")
        }
        self.count(own == nil ? "first" : "recoveries")
        self.count("recovered", own == nil ? 0 : publications.count)
        self.count("recovered by \(self.transport)", own == nil ? 0 : publications.count)
        let start = (epoch: epoch, offset: own?.offset ?? 0)
        self.positions[room] = start
        if start.offset != offset {
            if publications.isEmpty, self.skips(to: offset + 1, after: start, in: room) {
                self.count("skipped recoveries")
                self.positions[room] = (epoch, offset)
            } else {
                self.complain("\(room) is recovered from \(start), but the reply begins elsewhere: \(result)")
            }
        }
        for publication in publications { self.note(publication, in: room) }
    }

    /// What is received from here on must be complete.
    private func restart(_ room: String, at position: (epoch: String, offset: Int)) {
        self.positions[room] = position
        self.restarts[room, default: []].append(self.received[room]?.count ?? 0)
    }

    /// Whether a node whose newest publication has this position must recover a program.
    private func mustRecover(
        from own: (epoch: String, offset: Int)?, to newest: (epoch: String, offset: Int), in room: String
    ) -> Bool {
        let hasSame = own.map { $0 == newest } ?? false
        if !hasSame, self.lacking.contains(room) { return false }
        switch self.recovery {
        case .off: return false
        case .stream:
            guard let own, own.epoch == newest.epoch, own.offset <= newest.offset else { return false }
            return hasSame || !self.lacksNext(after: own, in: room)
        case .cache:
            guard newest.offset > 0 else { return false }
            return hasSame || !self.lacksNext(after: (newest.epoch, newest.offset - 1), in: room)
        }
    }

    /// The program got the newest publication alone, or has it.
    private func joinedCache(
        _ room: String, _ position: (epoch: String, offset: Int), _ publications: [[String: Any]],
        after own: (epoch: String, offset: Int)?
    ) {
        self.count("cached")
        guard let newest = publications.first?["offset"] as? Int,
            let number = (publications[0]["data"] as? [String: Any])?["n"] as? Int
        else {
            let hasNewest = own.map { own in
                own.epoch == position.epoch && self.skips(to: position.offset + 1, after: own, in: room)
            }
            if self.wanted == nil, hasNewest != true {
                self.complain("\(room) is recovered at \(position) without a publication")
            }
            return self.restart(room, at: position)
        }
        if publications.count > 1 { self.complain("\(room) has \(publications.count) publications of a cache") }
        if let own, own.epoch == position.epoch, newest <= own.offset {
            self.complain("\(room) at \(own) has the older \(newest)")
        }
        self.restart(room, at: (position.epoch, newest))
        self.received[room, default: []].append(
            Received(epoch: position.epoch, offset: newest, number: number))
    }

    /// Of a room without a history.
    private func noteUnkept(_ publication: [String: Any], in room: String) {
        guard publication["offset"] == nil, let number = (publication["data"] as? [String: Any])?["n"] as? Int else {
            return self.complain("publication with an offset, or without data: \(publication)")
        }
        self.received[room, default: []].append(Received(epoch: "", offset: 0, number: number))
    }

    private func note(_ publication: [String: Any], in room: String) {
        if self.recovery == .off { return self.noteUnkept(publication, in: room) }
        guard let offset = publication["offset"] as? Int, let own = self.positions[room],
            let number = (publication["data"] as? [String: Any])?["n"] as? Int
        else { return self.complain("publication without offset or data: \(publication)") }
        if let wanted = self.wanted?(room, own.epoch), !wanted.contains(offset) {
            self.complain("\(room): \(offset), number \(number), is not wanted")
        }
        if !self.skips(to: offset, after: own, in: room) {
            self.complain("\(room): \(own.epoch) \(own.offset) is followed by \(offset), number \(number)")
        }
        self.positions[room] = (own.epoch, offset)
        self.received[room, default: []].append(Received(epoch: own.epoch, offset: offset, number: number))
    }
}
