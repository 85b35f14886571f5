import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import Synchronization

extension Transfer {
    /// Whether the content may go into the cache: downloads do not, nor do parts of a stream of parts.
    var mayBeKept: Bool { self.task is URLSessionDataTask && !(self.task is URLSessionUploadTask) }

    func requestChanged(_ request: URLRequest) {
        self.task.change(\.currentRequest) { $0.currentRequest = request }
    }

    func redirected() { self.record.redirected() }

    /// - Parameter transaction: made only where somebody could want it.
    func note(_ transaction: @autoclosure () -> TransactionRecord) {
        if self.isMeasured { self.record.add(transaction()) }
    }

    // MARK: The response

    /// The response is known; its content comes as it is pulled.
    func responded(_ response: URLResponse) {
        guard self.stage == .loading else { return }
        if self.result.isDelegate, self.task is URLSessionDataTask, let splitting = PartsSplitting(response) {
            self.parts = splitting
        }
        self.show(response)
    }

    /// One response of several, or the only one: tells it, and goes on as it is answered.
    func show(_ response: URLResponse) {
        let expected = response.expectedContentLength
        let isUnseen = self.task.changeUnseen {
            $0.expectedToReceive = expected
            $0.response = response
        }
        if !isUnseen {
            self.task.change(\.countOfBytesExpectedToReceive) { $0.expectedToReceive = expected }
            self.task.change(\.response) { $0.response = response }
            self.showProgress()
        }
        switch self.result {
        case .awaitedData where !self.contentFaces.isEmpty: self.askDisposition(response)
        case .data, .awaitedData:
            self.sink = .memory(Data())
            self.loader?.pull(.max)
        case .bytes(let channel, let answer):
            self.sink = .channel(channel)
            answer(.success(response))
            self.loader?.pull(DeliveryWindow.limit)
        case .file, .lastingFile: self.beginFile(response)
        case .delegate: self.askDisposition(response)
        }
    }

    /// Bytes to make room for before content comes: no more on a server's mere word. A large block that is taken and given
    /// back would also teach the allocator to keep much for itself.
    private func room(for response: URLResponse) -> Int {
        guard self.task.facts.withLock({ $0.currentRequest?.httpMethod }) != "HEAD" else { return 0 }
        return Int(max(0, min(response.expectedContentLength, 1 << 20)))
    }

    /// Content that comes in one piece is that piece.
    private func joined(_ all: consuming Data, _ data: Data) -> Data {
        guard all.isEmpty else {
            all.append(data)
            return all
        }
        let room = self.response.map { self.room(for: $0) } ?? 0
        guard room > data.count else { return data }
        var all = Data(capacity: room)
        all.append(data)
        return all
    }

    private func askDisposition(_ response: URLResponse) {
        guard self.task is URLSessionDataTask else { return self.beginFile(response) }
        self.awaitsAnswer = true
        self.ask(response) { transfer, disposition in
            transfer.awaitsAnswer = false
            switch disposition {
            case .cancel: transfer.failed(LoadFailure.error(.cancelled, url: response.url))
            // Awaited content is data, whatever else the delegate would make of it.
            case _ where !transfer.result.isDelegate:
                transfer.sink = .memory(Data())
                transfer.goOnPulling()
            case .allow:
                transfer.sink = .delegate
                transfer.goOnPulling()
            case .becomeDownload: transfer.becomeDownload(response)
            case .becomeStream: transfer.becomeStream()
            }
        }
    }

    private func goOnPulling() {
        if self.upgradedConnection != nil { return self.settleUpgrade() }
        guard !self.finishWaits else { return self.finished() }
        guard self.parts?.goOn(self) ?? true else { return }
        self.loader?.pull(self.result.isDelegate || self.tellsAwaitedContent ? DeliveryWindow.limit : .max)
    }

    // MARK: The content

    /// - Parameter wireBytes: that it was before it was decoded.
    func received(_ data: Data, wireBytes: Int) {
        guard self.stage == .loading else { return }
        if self.parts != nil, self.parts?.received(data, self) == true { return }
        self.give(data, wireBytes: wireBytes)
    }

    /// Where content goes that nobody else wants to have.
    var file: DownloadSink? {
        guard self.stage == .loading, self.parts == nil, case .file(let file) = self.sink else { return nil }
        return file
    }

    /// Content as it was on the wire, straight to the file.
    func received(_ bytes: RawSpan, wireBytes: Int, into file: DownloadSink) {
        self.count(wireBytes)
        file.append(bytes, for: self)
    }

    func give(_ data: Data, wireBytes: Int) {
        switch self.sink {
        case .none: break
        case .memory(let all):
            self.sink = .none
            self.sink = .memory(self.joined(consume all, data))
            self.count(wireBytes)
            // Counted here: the result may be there before its delegate is told.
            if self.tellsAwaitedContent { self.tellLater(data, wireBytes: 0) }
        case .delegate: self.tellLater(data, wireBytes: wireBytes)
        case .file(let file):
            self.count(wireBytes)
            file.append(data.bytes, for: self)
        case .channel(let channel):
            self.count(wireBytes)
            // What the reader has no room for is asked for when it has.
            if channel.offer(data) { self.loader?.pull(data.count) } else { self.owedToChannel += data.count }
        }
    }

    private func tellLater(_ data: Data, wireBytes: Int) {
        guard self.window.add(data, wireBytes: wireBytes, joins: self.joinsPieces) else { return }
        self.core.line.add { self.deliver() }
    }

    func channelHasRoom() {
        let owed = self.owedToChannel
        self.owedToChannel = 0
        if owed > 0 { self.loader?.pull(owed) }
    }

    /// On the delegate queue.
    private func deliver() {
        for piece in self.window.take() where !piece.data.isEmpty {
            self.count(piece.wireBytes)
            self.tell(piece.data)
            let more = self.window.done(piece.data.count)
            if more > 0 { self.core.pool.execute { self.loader?.pull(more) } }
        }
    }

    private func tell(_ data: Data) {
        guard let task = self.task as? URLSessionDataTask else { return }
        for face in self.contentFaces where face.mayAnswer(.data) {
            if face.tell(.data, { face.data?.urlSession(self.session, dataTask: task, didReceive: data) }) { return }
        }
    }

    /// From any thread.
    func count(_ received: Int) {
        guard received > 0, !self.task.changeUnseen({ $0.received += Int64(received) }) else { return }
        self.task.change(\.countOfBytesReceived) { $0.received += Int64(received) }
        self.showProgress()
    }

    /// From any thread; nothing is done unless somebody has asked for the progress.
    func showProgress() {
        let facts = self.task.facts.withLock { $0.progress == nil ? nil : $0 }
        if let facts { facts.progress?.show(facts) }
    }

    /// An answer that was kept: all of it at once.
    func give(_ response: URLResponse, _ data: Data) {
        let loader = StoredLoad(data, for: self)
        self.loader = loader
        self.responded(response)
    }

    // MARK: The body

    func sent(_ count: Int) {
        guard self.stage == .loading else { return }
        var (total, expected) = (Int64(0), Int64(0))
        self.task.change(\.countOfBytesSent) { facts in
            facts.sent += Int64(count)
            (total, expected) = (facts.sent, facts.expectedToSend)
        }
        self.showProgress()
        let (task, session, sent, all) = (self.task, self.session, total, expected)
        self.core.line.tell(self.faces, .sentBody) { face in
            face.task?.urlSession(
                session, task: task, didSendBodyData: Int64(count), totalBytesSent: sent, totalBytesExpectedToSend: all)
        }
    }

    func informed(_ response: HTTPURLResponse) {
        let (task, session) = (self.task, self.session)
        self.core.line.tell(self.faces, .informationalResponse) { face in
            face.task?.urlSession(session, task: task, didReceiveInformationalResponse: response)
        }
    }
}

/// The parts of a `multipart/x-mixed-replace`, each a response with its content.
///
/// Each is told and answered like a response of its own: until then what comes waits, and no more is pulled.
final class PartsSplitting {
    private var splitter: MultipartParser
    private let response: URLResponse
    /// The first answer is about the whole.
    private var isAnswered = false
    private var isAtEnd = false

    /// - Returns: `nil` for a response that is not of parts.
    init?(_ response: URLResponse) {
        guard let http = response as? HTTPURLResponse, http.mimeType == "multipart/x-mixed-replace",
            let type = http.value(forHTTPHeaderField: "Content-Type").flatMap({ ContentType($0) }),
            let boundary = type.parameter("boundary"), let splitter = MultipartParser(boundary: boundary)
        else { return nil }
        self.splitter = splitter
        self.response = response
    }

    /// The response that was shown is allowed.
    /// - Returns: whether more may be pulled.
    func goOn(_ transfer: Transfer) -> Bool {
        self.isAnswered = true
        return self.give(transfer)
    }

    /// - Returns: whether the bytes were taken, which they always are.
    func received(_ data: Data, _ transfer: Transfer) -> Bool {
        self.splitter.bytesReceived(data)
        if self.isAnswered, self.give(transfer) { transfer.loader?.pull(data.count) }
        return true
    }

    func ended(_ transfer: Transfer) {
        self.isAtEnd = true
        self.splitter.inputEnded()
        _ = self.give(transfer)
    }

    /// Tells what is there, up to the next response that must be answered.
    private func give(_ transfer: Transfer) -> Bool {
        while let event = self.splitter.nextEvent() {
            switch event {
            case .partBegan(let fields):
                guard !self.isAtEnd else { continue }
                self.isAnswered = false
                transfer.show(self.part(fields))
                if !self.isAnswered { return false }
            case .content(let bytes): transfer.give(Data(bytes), wireBytes: bytes.count)
            case .partEnded, .finished: break
            // Cameras just stop: what came was fine.
            case .violation: break
            }
        }
        return true
    }

    private func part(_ fields: HTTPFields) -> URLResponse {
        guard let whole = self.response as? HTTPURLResponse, let url = whole.url else { return self.response }
        return HTTPURLResponse(
            url: url, statusCode: whole.statusCode, httpVersion: whole.httpVersion ?? "HTTP/1.1", fields: fields,
            contentIsEncoded: false)
    }
}

/// Content on its way to the delegate queue: gathered while the queue is busy, and counted, so that no more comes from
/// the network than somebody takes.
final class DeliveryWindow: Sendable {
    /// Bytes that are asked for in advance, and bytes below which more are.
    static let limit = 512 << 10
    static let watermark = 256 << 10

    /// What is told at once.
    struct Piece: Sendable {
        var data: Data
        /// That it was before it was decoded.
        var wireBytes: Int
    }

    private struct State {
        var waiting: [Piece] = []
        var isScheduled = false
        /// Given to the delegate since more was asked for.
        var taken = 0
    }
    private let state = Mutex(State())

    /// - Parameter joins: whether it may be told together with what waits.
    /// - Returns: whether a message is to be scheduled that takes what waits.
    func add(_ data: Data, wireBytes: Int, joins: Bool) -> Bool {
        self.state.withLock { state in
            if joins, !state.waiting.isEmpty {
                state.waiting[state.waiting.count - 1].data.append(data)
                state.waiting[state.waiting.count - 1].wireBytes += wireBytes
            } else {
                state.waiting.append(Piece(data: data, wireBytes: wireBytes))
            }
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    func take() -> [Piece] {
        self.state.withLock { state in
            defer {
                state.waiting = []
                state.isScheduled = false
            }
            return state.waiting
        }
    }

    /// The delegate has had so many bytes.
    /// - Returns: how many more may come; 0 while that is not worth a word.
    func done(_ count: Int) -> Int {
        self.state.withLock { state in
            state.taken += count
            guard state.taken >= Self.limit - Self.watermark else { return 0 }
            defer { state.taken = 0 }
            return state.taken
        }
    }
}

/// Where the content of a response goes.
enum ContentSink {
    case none
    /// To the delegate, through the window.
    case delegate
    /// Into memory, whole.
    case memory(Data)
    case file(DownloadSink)
    case channel(ByteChannel)

    /// Calls `done`, on any thread, when nothing waits to be written any more.
    func finish(_ done: @escaping @Sendable (SinkFailure?) -> Void) {
        switch self {
        case .file(let file): file.finish(done)
        case .none, .delegate, .memory, .channel: done(nil)
        }
    }
}
