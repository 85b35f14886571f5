import Foundation
import TestSupport
import URLLoading

/// One task of a simulated session: the program's actions, and the expected calls.
final class SimulatedTask {
    /// The receiver of the content.
    enum ContentReceiver: CaseIterable {
        case delegate
        case handler
    }

    let number: Int
    let plan: ServerPlan
    let reception: ContentReceiver
    let method: String
    let bodySize: Int
    /// The delegate's answers.
    let credential: URLCredential?
    let followsRedirect: Bool
    let disposition: URLSession.ResponseDisposition
    /// Whether the delegate answers later.
    let hesitates: Bool
    /// The pass in which the program interferes; `nil` means never.
    private let cancelsIn: Int?
    private let suspendsIn: Int?
    private let resumesIn: Int
    private var passes = 0

    var task: URLSessionTask?
    private(set) var events: [String] = []
    private(set) var complaints: [String] = []
    private(set) var data = Data()
    private(set) var response: HTTPURLResponse?
    private(set) var error: (any Error)?
    private(set) var completions = 0
    private(set) var wasCancelled = false
    private var sentTotal: Int64 = 0

    init(_ number: Int, isMild: Bool, usesHTTP2: Bool, largest: Int, using chance: inout SeededGenerator) {
        self.number = number
        var plan = ServerPlan(isMild: isMild, largest: largest, using: &chance)
        // The random nonce would give compressed headers of varying length.
        if usesHTTP2, plan.detour == .digest { plan.detour = .basic }
        self.plan = plan
        self.reception = ContentReceiver.allCases.randomElement(using: &chance) ?? .delegate
        self.method = ["GET", "GET", "GET", "HEAD", "POST", "PUT"].randomElement(using: &chance) ?? "GET"
        let hasBody = ["POST", "PUT"].contains(self.method)
        self.bodySize = hasBody ? Int.random(in: 0...largest, using: &chance) : 0
        let knowsPassword = Int.random(in: 0..<4, using: &chance) > 0
        self.credential = knowsPassword ? URLCredential(user: "u", password: "p", persistence: .none) : nil
        self.followsRedirect = Int.random(in: 0..<6, using: &chance) > 0
        self.disposition = Int.random(in: 0..<12, using: &chance) == 0 ? .cancel : .allow
        self.hesitates = Int.random(in: 0..<4, using: &chance) == 0
        self.cancelsIn = Int.random(in: 0..<6, using: &chance) == 0 ? Int.random(in: 0...30, using: &chance) : nil
        let suspends = Int.random(in: 0..<5, using: &chance) == 0
        self.suspendsIn = suspends ? Int.random(in: 0...20, using: &chance) : nil
        self.resumesIn = Int.random(in: 1...15, using: &chance)
    }

    var isOver: Bool { self.completions > 0 }
    var isDelegate: Bool { self.reception == .delegate }

    func start(_ session: URLSession, port: UInt16) {
        guard let url = URL(string: "http://one.test:\(port)/\(self.number)/0") else { return }
        var request = URLRequest(url: url)
        request.httpMethod = self.method
        let body = Data(BodyPattern.request(self.number, self.bodySize))
        let isUpload = ["POST", "PUT"].contains(self.method)
        switch (self.reception, isUpload) {
        case (.delegate, false): self.task = session.dataTask(with: request)
        case (.delegate, true): self.task = session.uploadTask(with: request, from: body)
        case (.handler, false): self.task = session.dataTask(with: request, completionHandler: self.handler)
        case (.handler, true):
            self.task = session.uploadTask(with: request, from: body, completionHandler: self.handler)
        }
        self.task?.resume()
    }

    private var handler: @Sendable (Data?, URLResponse?, (any Error)?) -> Void {
        let record = Confined(self)
        return { data, response, error in
            record.value.data = data ?? Data()
            if let response { record.value.response = response as? HTTPURLResponse }
            record.value.completed(error)
        }
    }

    /// Interferes in the chosen pass.
    func pass() {
        self.passes += 1
        guard !self.isOver, let task = self.task else { return }
        if self.passes == self.cancelsIn {
            self.wasCancelled = true
            task.cancel()
        }
        guard let suspendsIn = self.suspendsIn else { return }
        if self.passes == suspendsIn { task.suspend() }
        if self.passes == suspendsIn + self.resumesIn { task.resume() }
    }

    func resumeIfSuspended() {
        if self.task?.state == .suspended { self.task?.resume() }
    }

    func cancelledWithSession() { self.wasCancelled = true }

    // MARK: Notifications

    func note(_ event: String) {
        if self.isOver { self.complain("\(event) after the end") }
        if self.events.last != event { self.events.append(event) }
    }

    func complain(_ text: String) { self.complaints.append("task \(self.number): \(text)") }

    func received(_ response: URLResponse) {
        self.note("response")
        if self.response != nil { self.complain("two responses") }
        self.response = response as? HTTPURLResponse
    }

    func received(_ data: Data) {
        self.note("data")
        if self.response == nil { self.complain("data before the response") }
        if data.isEmpty { self.complain("an empty piece of data") }
        self.data += data
    }

    func sent(_ count: Int64, total: Int64, expected: Int64) {
        self.note("sent")
        // A body that is sent again is counted anew, and the expectation stays.
        let goesOn = total == self.sentTotal + count || total == count
        if count <= 0 || expected != Int64(self.bodySize) || total > expected || !goesOn {
            self.complain("sent \(count), total \(total) after \(self.sentTotal) of \(expected)")
        }
        self.sentTotal = total
    }

    func completed(_ error: (any Error)?) {
        self.note("complete")
        self.completions += 1
        self.error = error
        if self.task?.state != .completed { self.complain("its state is \(String(describing: self.task?.state))") }
    }

    // MARK: Judging

    /// - Parameter isMild: the network loses nothing.
    func judge(isMild: Bool) {
        if self.completions != 1 { self.complain("ended \(self.completions) times: \(self.events)") }
        self.judgeContent()
        if let error, !(error is URLError) { self.complain("\(error)") }
        if isMild { self.judgeSuccess() }
        guard self.isDelegate, self.isOver else { return }
        // The metrics come directly before the end.
        if self.events.suffix(2) != ["metrics", "complete"] { self.complain("order: \(self.events)") }
    }

    private func judgeContent() {
        guard let response else {
            if self.error == nil, self.isOver { self.complain("success without a response") }
            return
        }
        if response.value(forHTTPHeaderField: "Content-Type") != "application/octet-stream" {
            self.complain("unknown response: \(response)")
        }
        let whole = BodyPattern.response(self.number, status: response.statusCode, self.plan)
        // A 303 turns HEAD into GET.
        let hasContent = self.method != "HEAD" || self.plan.detour.isSeeOther && response.statusCode == 200
        let expected = hasContent ? whole : []
        let isWhole = Array(self.data) == expected
        if self.error == nil, !isWhole {
            self.complain("success with \(self.data.count) bytes of \(expected.count)")
        } else if !expected.starts(with: self.data) {
            self.complain("wrong content, \(self.data.count) bytes of \(expected.count)")
        }
    }

    private func judgeSuccess() {
        let isRefused = self.isDelegate && self.disposition == .cancel && self.response != nil
        guard !self.wasCancelled, !isRefused, let error = self.error as? URLError else { return }
        // A request that must not be repeated may use a connection that the server is closing.
        if self.method == "POST", error.code == .networkConnectionLost { return }
        self.complain("failed without a reason: \(error) \(self.events)")
    }
}

/// Wraps closures that are called on the test's thread only.
struct Confined<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) { self.value = value }
}
