import Foundation
import HTTPSemantics
import HTTPTransport
import HTTPTypes
import Synchronization

extension TaskLoader {
    /// Whether the content may go into the cache: downloads do not, nor do parts of a stream of parts.
    var isCacheable: Bool { self.task is URLSessionDataTask && !(self.task is URLSessionUploadTask) }

    func requestChanged(_ request: URLRequest) {
        self.task.mutate(\.currentRequest) { $0.currentRequest = request }
    }

    func countRedirect() { self.record.countRedirect() }

    /// - Parameter transaction: made only where somebody could want it.
    func recordTransaction(_ transaction: @autoclosure () -> TransactionRecord) {
        if self.isMeasured { self.record.add(transaction()) }
    }

    // MARK: The response

    /// The response is known; its content comes as it is pulled.
    func responseReceived(_ response: URLResponse) {
        guard self.stage == .loading else { return }
        if self.consumer.isDelegate, self.task is URLSessionDataTask, let splitting = MultipartSplitter(response) {
            self.multipart = splitting
        }
        self.publish(response)
    }

    /// One response of several, or the only one: tells it, and goes on as it is answered.
    func publish(_ response: URLResponse) {
        let expected = response.expectedContentLength
        let isUnseen = self.task.mutateIfUnobserved {
            $0.expectedToReceive = expected
            $0.response = response
        }
        if !isUnseen {
            self.task.mutate(\.countOfBytesExpectedToReceive) { $0.expectedToReceive = expected }
            self.task.mutate(\.response) { $0.response = response }
            self.updateProgress()
        }
        switch self.consumer {
        case .awaitedData where !self.contentDelegates.isEmpty: self.requestDisposition(response)
        case .data, .awaitedData:
            self.sink = .memory(Data())
            self.currentLoad?.pull(.max)
        case .bytes(let channel, let answer):
            self.sink = .channel(channel)
            answer(.success(response))
            self.currentLoad?.pull(DeliveryWindow.limit)
        case .file, .lastingFile: self.startFile(response)
        case .delegate: self.requestDisposition(response)
        }
    }

    /// Bytes to make room for before content comes: no more on a server's mere word. A large block that is taken and given
    /// back would also teach the allocator to keep much for itself.
    private func initialCapacity(for response: URLResponse) -> Int {
        guard self.task.metadata.withLock({ $0.currentRequest?.httpMethod }) != "HEAD" else { return 0 }
        return Int(max(0, min(response.expectedContentLength, 1 << 20)))
    }

    /// Content that comes in one piece is that piece.
    private func appending(_ all: consuming Data, to data: Data) -> Data {
        guard all.isEmpty else {
            all.append(data)
            return all
        }
        let room = self.response.map { self.initialCapacity(for: $0) } ?? 0
        guard room > data.count else { return data }
        var all = Data(capacity: room)
        all.append(data)
        return all
    }

    private func requestDisposition(_ response: URLResponse) {
        guard self.task is URLSessionDataTask else { return self.startFile(response) }
        self.awaitsDisposition = true
        self.askDisposition(response) { transfer, disposition in
            transfer.awaitsDisposition = false
            switch disposition {
            case .cancel: transfer.failed(LoadFailure.error(.cancelled, url: response.url))
            // Awaited content is data, whatever else the delegate would make of it.
            case _ where !transfer.consumer.isDelegate:
                transfer.sink = .memory(Data())
                transfer.resumePulling()
            case .allow:
                transfer.sink = .delegate
                transfer.resumePulling()
            case .becomeDownload: transfer.becomeDownload(response)
            case .becomeStream: transfer.becomeStream()
            }
        }
    }

    private func resumePulling() {
        if self.upgradedConnection != nil { return self.settleUpgrade() }
        guard !self.isFinishPending else { return self.finished() }
        guard self.multipart?.resume(self) ?? true else { return }
        self.currentLoad?.pull(self.consumer.isDelegate || self.delegateReceivesContent ? DeliveryWindow.limit : .max)
    }

    // MARK: The content

    /// - Parameter wireBytes: that it was before it was decoded.
    func received(_ data: Data, wireBytes: Int) {
        guard self.stage == .loading else { return }
        if self.multipart != nil, self.multipart?.received(data, self) == true { return }
        self.deliver(data, wireBytes: wireBytes)
    }

    /// Where content goes that nobody else wants to have.
    var file: DownloadSink? {
        guard self.stage == .loading, self.multipart == nil, case .file(let file) = self.sink else { return nil }
        return file
    }

    /// Content as it was on the wire, straight to the file.
    func received(_ bytes: RawSpan, wireBytes: Int, into file: DownloadSink) {
        self.countReceived(wireBytes)
        file.append(bytes, for: self)
    }

    func deliver(_ data: Data, wireBytes: Int) {
        switch self.sink {
        case .none: break
        case .memory(let all):
            self.sink = .none
            self.sink = .memory(self.appending(consume all, to: data))
            self.countReceived(wireBytes)
            // Counted here: the result may be there before its delegate is told.
            if self.delegateReceivesContent { self.enqueueForDelegate(data, wireBytes: 0) }
        case .delegate: self.enqueueForDelegate(data, wireBytes: wireBytes)
        case .file(let file):
            self.countReceived(wireBytes)
            file.append(data.bytes, for: self)
        case .channel(let channel):
            self.countReceived(wireBytes)
            // What the reader has no room for is asked for when it has.
            if channel.offer(data) { self.currentLoad?.pull(data.count) } else { self.channelCredit += data.count }
        }
    }

    private func enqueueForDelegate(_ data: Data, wireBytes: Int) {
        guard self.window.append(data, wireBytes: wireBytes, joins: self.coalescesContent) else { return }
        self.core.delegateQueue.add { self.deliverWindow() }
    }

    func resumeChannel() {
        let owed = self.channelCredit
        self.channelCredit = 0
        if owed > 0 { self.currentLoad?.pull(owed) }
    }

    /// On the delegate queue.
    private func deliverWindow() {
        for piece in self.window.take() where !piece.data.isEmpty {
            self.countReceived(piece.wireBytes)
            self.notifyData(piece.data)
            let more = self.window.consumed(piece.data.count)
            if more > 0 { self.core.pool.execute { self.currentLoad?.pull(more) } }
        }
    }

    private func notifyData(_ data: Data) {
        guard let task = self.task as? URLSessionDataTask else { return }
        for face in self.contentDelegates where face.mayImplement(.data) {
            if face.notify(.data, { face.data?.urlSession(self.session, dataTask: task, didReceive: data) }) { return }
        }
    }

    /// From any thread.
    func countReceived(_ received: Int) {
        guard received > 0, !self.task.mutateIfUnobserved({ $0.bytesReceived += Int64(received) }) else { return }
        self.task.mutate(\.countOfBytesReceived) { $0.bytesReceived += Int64(received) }
        self.updateProgress()
    }

    /// From any thread; nothing is done unless somebody has asked for the progress.
    func updateProgress() {
        let facts = self.task.metadata.withLock { $0.progress == nil ? nil : $0 }
        if let facts { facts.progress?.update(facts) }
    }

    /// An answer that was kept: all of it at once.
    func deliver(_ response: URLResponse, _ data: Data) {
        let loader = StoredLoad(data, for: self)
        self.currentLoad = loader
        self.responseReceived(response)
    }

    // MARK: The body

    func bodySent(_ count: Int) {
        guard self.stage == .loading else { return }
        var (total, expected) = (Int64(0), Int64(0))
        self.task.mutate(\.countOfBytesSent) { facts in
            facts.bytesSent += Int64(count)
            (total, expected) = (facts.bytesSent, facts.expectedToSend)
        }
        self.updateProgress()
        let (task, session, sent, all) = (self.task, self.session, total, expected)
        self.core.delegateQueue.notify(self.delegates, .sentBody) { face in
            face.task?.urlSession(
                session, task: task, didSendBodyData: Int64(count), totalBytesSent: sent, totalBytesExpectedToSend: all)
        }
    }

    func informationalReceived(_ response: HTTPURLResponse) {
        let (task, session) = (self.task, self.session)
        self.core.delegateQueue.notify(self.delegates, .informationalResponse) { face in
            face.task?.urlSession(session, task: task, didReceiveInformationalResponse: response)
        }
    }
}

/// The parts of a `multipart/x-mixed-replace`, each a response with its content.
///
/// Each is told and answered like a response of its own: until then what comes waits, and no more is pulled.
final class MultipartSplitter {
    private var parser: MultipartParser
    private let response: URLResponse
    /// The first answer is about the whole.
    private var isResponseAllowed = false
    private var isAtEnd = false

    /// - Returns: `nil` for a response that is not of parts.
    init?(_ response: URLResponse) {
        guard let http = response as? HTTPURLResponse, http.mimeType == "multipart/x-mixed-replace",
            let type = http.value(forHTTPHeaderField: "Content-Type").flatMap({ ContentType($0) }),
            let boundary = type.parameter("boundary"), let splitter = MultipartParser(boundary: boundary)
        else { return nil }
        self.parser = splitter
        self.response = response
    }

    /// The response that was shown is allowed.
    /// - Returns: whether more may be pulled.
    func resume(_ transfer: TaskLoader) -> Bool {
        self.isResponseAllowed = true
        return self.deliverEvents(to: transfer)
    }

    /// - Returns: whether the bytes were taken, which they always are.
    func received(_ data: Data, _ transfer: TaskLoader) -> Bool {
        self.parser.bytesReceived(data)
        if self.isResponseAllowed, self.deliverEvents(to: transfer) { transfer.currentLoad?.pull(data.count) }
        return true
    }

    func ended(_ transfer: TaskLoader) {
        self.isAtEnd = true
        self.parser.inputEnded()
        _ = self.deliverEvents(to: transfer)
    }

    /// Tells what is there, up to the next response that must be answered.
    private func deliverEvents(to transfer: TaskLoader) -> Bool {
        while let event = self.parser.nextEvent() {
            switch event {
            case .partBegan(let fields):
                guard !self.isAtEnd else { continue }
                self.isResponseAllowed = false
                transfer.publish(self.part(fields))
                if !self.isResponseAllowed { return false }
            case .content(let bytes): transfer.deliver(Data(bytes), wireBytes: bytes.count)
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
        var pieces: [Piece] = []
        var isScheduled = false
        /// Given to the delegate since more was asked for.
        var consumed = 0
    }
    private let state = Mutex(State())

    /// - Parameter joins: whether it may be told together with what waits.
    /// - Returns: whether a message is to be scheduled that takes what waits.
    func append(_ data: Data, wireBytes: Int, joins: Bool) -> Bool {
        self.state.withLock { state in
            if joins, !state.pieces.isEmpty {
                state.pieces[state.pieces.count - 1].data.append(data)
                state.pieces[state.pieces.count - 1].wireBytes += wireBytes
            } else {
                state.pieces.append(Piece(data: data, wireBytes: wireBytes))
            }
            defer { state.isScheduled = true }
            return !state.isScheduled
        }
    }

    func take() -> [Piece] {
        self.state.withLock { state in
            defer {
                state.pieces = []
                state.isScheduled = false
            }
            return state.pieces
        }
    }

    /// The delegate has had so many bytes.
    /// - Returns: how many more may come; 0 while that is not worth a word.
    func consumed(_ count: Int) -> Int {
        self.state.withLock { state in
            state.consumed += count
            guard state.consumed >= Self.limit - Self.watermark else { return 0 }
            defer { state.consumed = 0 }
            return state.consumed
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
