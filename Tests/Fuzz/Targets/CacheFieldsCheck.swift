import HTTPSemantics
import HTTPTypes

/// A line of the input is a field: of the request if it begins with `>`, else of the response.
enum CacheFieldsCheck {
    private static let now = HTTPDate(seconds: 1_700_000_000)

    static func run(_ bytes: [UInt8]) throws(InvariantViolation) {
        var (request, response) = (HTTPFields(), HTTPFields())
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n").prefix(64) {
            let isOfRequest = line.hasPrefix(">")
            let halves = (isOfRequest ? line.dropFirst() : line).split(separator: ":", maxSplits: 1)
            guard halves.count == 2, let name = HTTPField.Name(String(halves[0])) else { continue }
            let field = HTTPField(name: name, value: String(halves[1]))
            if isOfRequest { request.append(field) } else { response.append(field) }
        }
        for status in [200, 206, 304, 404, 999] { try self.check(status, request, response) }
    }

    private static func check(_ status: Int, _ request: HTTPFields, _ response: HTTPFields) throws(InvariantViolation) {
        let result = Storability.evaluate(method: .get, requestFields: request, status: status, fields: response)
        let later = self.now.advanced(by: 100)
        let entry = CacheEntry(
            status: status, fields: response, requestFields: request, requestTime: self.now, responseTime: later)
        let ages = [0, 1, 100, 1_000_000].map { entry.age(at: later.advanced(by: $0)) }
        try InvariantViolation.expect(ages.allSatisfy { $0 >= 0 }, "a negative age: \(ages)")
        try InvariantViolation.expect(ages == ages.sorted(), "it becomes younger: \(ages)")
        let fresh = [0, 1, 100, 1_000_000].map { entry.isFresh(at: later.advanced(by: $0)) }
        try InvariantViolation.expect(fresh == fresh.sorted { $0 && !$1 }, "it becomes fresh again: \(fresh)")
        for policy: CachePolicy in [
            .useProtocolCachePolicy, .returnCacheDataElseLoad, .returnCacheDataDontLoad, .reloadRevalidatingCacheData,
        ] {
            let decision = CacheDecision.decide(policy, method: .get, fields: request, entry: entry, now: later)
            if case .useStored = decision, policy == .useProtocolCachePolicy, result == .storable {
                try InvariantViolation.expect(!CacheControl(request).noCache, "used though the request forbade it")
            }
            if policy == .reloadRevalidatingCacheData {
                try InvariantViolation.expect(decision != .useStored, "used without asking")
            }
        }
        let update = entry.freshened(
            by: response, requestFields: request, requestTime: later, responseTime: later.advanced(by: 1))
        if let update, update.varyKey.values != nil {
            try InvariantViolation.expect(update.varyKey.matches(request), "does not match its own request")
        }
        _ = CacheInvalidation.invalidatedReferences(method: .post, status: 200, fields: response)
    }
}
