import Foundation
import Testing
import URLLoading

@Suite("The cache within transfers, RFC 9111", .loading, .timeLimit(.minutes(20)))
struct CacheLoadingTests {
    private func session(_ policy: URLRequest.CachePolicy = .useProtocolCachePolicy) -> URLSession {
        URLSession.test { $0.requestCachePolicy = policy }
    }

    private func fresh(_ fields: [String] = ["Cache-Control: max-age=600"]) async throws -> WebServer {
        let server = try await WebServer()
        server.on("/", oneByOne: [.text("first", fields), .text("second", fields)])
        return server
    }

    @Test func freshResponseIsAnsweredFromTheCache() async throws {
        let server = try await self.fresh()
        let session = self.session()
        for _ in 0..<3 {
            let loaded = try await session.load(server.url())
            #expect(loaded.text == "first" && loaded.status == 200)
        }
        #expect(server.requests.count == 1)
        session.invalidateAndCancel()
    }

    /// The fragment is no part of the cache key.
    @Test(arguments: ["Cache-Control: max-age=600", "Cache-Control: max-age=0"])
    func cachedResponseHasTheURLOfItsOwnRequest(_ freshness: String) async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["If-None-Match"] == nil
                ? .text("stored", ["ETag: \"1\"", freshness]) : .head(304, ["ETag: \"1\"", freshness])
        }
        let session = self.session()
        for fragment in ["#one", "#two", ""] {
            let url = try #require(URL(string: server.url().absoluteString + fragment))
            let loaded = try await session.load(url)
            #expect(loaded.text == "stored" && loaded.response?.url == url && loaded.status == 200)
        }
        #expect(server.requests.filter { $0["If-None-Match"] == nil }.count == 1)
        session.invalidateAndCancel()
    }

    /// RFC 9111 §4.4.
    @Test(arguments: [301, 302, 303, 307])
    func redirectedChangeInvalidatesItsTarget(_ status: Int) async throws {
        let server = try await WebServer()
        server.on("/done", .text("done"))
        server.on("/") { [fields = ["Cache-Control: max-age=600"]] request in
            request.method == "POST" ? .redirect(status, to: "/done") : .text("\(server.requests.count)", fields)
        }
        let session = self.session()
        #expect(try await session.load(server.url()).text == "1")
        #expect(try await session.load(server.url()).text == "1")
        #expect(try await session.load(.to(server.url(), "POST", body: "a")).text == "done")
        #expect(try await session.load(server.url()).text == "4")
        session.invalidateAndCancel()
    }

    @Test func changeThatLeadsBackIsSeenAtOnce() async throws {
        let server = try await WebServer()
        server.on("/") { [fields = ["Cache-Control: max-age=600"]] request in
            request.method == "POST" ? .redirect(303, to: "/") : .text("\(server.requests.count)", fields)
        }
        let session = self.session()
        #expect(try await session.load(server.url()).text == "1")
        #expect(try await session.load(.to(server.url(), "POST", body: "a")).text == "3")
        session.invalidateAndCancel()
    }

    /// RFC 9111 §4.3.5.
    @Test(arguments: [("\"a\"", "1"), ("\"b\"", "3")])
    func headThatContradictsTheStoredResponseRemovesIt(_ tag: String, _ text: String) async throws {
        let server = try await WebServer()
        server.on("/") { request in
            let fields = ["Cache-Control: max-age=600", "ETag: \(request.method == "HEAD" ? tag : "\"a\"")"]
            return request.method == "HEAD" ? .head(200, fields) : .text("\(server.requests.count)", fields)
        }
        let session = self.session()
        #expect(try await session.load(server.url()).text == "1")
        var head = URLRequest(url: server.url(), cachePolicy: .reloadIgnoringLocalCacheData)
        head.httpMethod = "HEAD"
        #expect(try await session.load(head).status == 200)
        #expect(try await session.load(server.url()).text == text)
        session.invalidateAndCancel()
    }

    @Test func metricsReportACachedResponse() async throws {
        let server = try await self.fresh()
        let recorder = DataRecorder()
        let session = URLSession.test(recorder)
        _ = try await session.load(server.url())
        session.dataTask(with: server.url()).resume()
        let notes = try await recorder.end()
        #expect(notes.data == Data("first".utf8))
        #expect(notes.metrics?.transactionMetrics.last?.resourceFetchType == .localCache)
        session.invalidateAndCancel()
    }

    @Test(arguments: [
        "Cache-Control: no-store", "Cache-Control: no-cache", "Cache-Control: max-age=0", "Pragma: no-cache",
        "Expires: Thu, 01 Jan 1970 00:00:00 GMT",
    ])
    func serverIsAskedWhereItMustBe(_ field: String) async throws {
        let server = try await self.fresh([field])
        let session = self.session()
        #expect(try await session.load(server.url()).text == "first")
        #expect(try await session.load(server.url()).text == "second")
        session.invalidateAndCancel()
    }

    @Test(arguments: ["ETag: \"v1\"", "Last-Modified: Tue, 15 Nov 1994 12:45:26 GMT"])
    func staleResponseIsValidated(_ validator: String) async throws {
        let server = try await WebServer()
        server.on("/") { request in
            let isKnown =
                request["If-None-Match"] == "\"v1\""
                || request["If-Modified-Since"] == "Tue, 15 Nov 1994 12:45:26 GMT"
            return isKnown
                ? .head(304, ["X-Checked: yes", "Cache-Control: max-age=0"])
                : .text("kept", [validator, "Cache-Control: max-age=0"])
        }
        let session = self.session()
        #expect(try await session.load(server.url()).text == "kept")
        let again = try await session.load(server.url())
        #expect(again.text == "kept" && again.status == 200 && server.requests.count == 2)
        #expect(again.http?.value(forHTTPHeaderField: "X-Checked") == "yes")
        session.invalidateAndCancel()
    }

    /// RFC 9111 §4.1 and §5.2.2.5: what the 304 says counts as well.
    @Test(arguments: ["Vary: Accept-Language", "Vary: *", "Cache-Control: max-age=600, no-store"])
    func notModifiedResponseRestrictsTheUseOfTheStoredOne(_ field: String) async throws {
        let server = try await WebServer()
        server.on(
            "/",
            oneByOne: [
                .text("de", ["ETag: \"v1\"", "Cache-Control: max-age=0"]),
                .head(304, ["ETag: \"v1\"", "Cache-Control: max-age=600", field]), .text("en"),
            ])
        let session = self.session()
        for (language, text) in [("de", "de"), ("de", "de"), ("en", "en")] {
            let loaded = try await session.load(.to(server.url(), "GET", ["Accept-Language": language]))
            #expect(loaded.text == text)
        }
        #expect(server.requests.count == 3)
        session.invalidateAndCancel()
    }

    /// RFC 9111 §4.
    @Test func unvalidatedResponseHasItsAge() async throws {
        let server = try await self.fresh(["Cache-Control: max-age=600", "Age: 60"])
        let session = self.session()
        #expect(try await session.load(server.url()).http?.value(forHTTPHeaderField: "Age") == "60")
        let age = try await session.load(server.url()).http?.value(forHTTPHeaderField: "Age").flatMap { Int($0) }
        // It may have been under way or stored for some seconds.
        #expect(age.map { (60...400).contains($0) } == true && server.requests.count == 1)
        session.invalidateAndCancel()
    }

    /// RFC 9111 §3.1.
    @Test func fieldsOfTheConnectionAreNotStored() async throws {
        let server = try await self.fresh([
            "Cache-Control: max-age=600", "Connection: X-Hop", "X-Hop: 1", "Proxy-Authenticate: Basic realm=\"a\"",
            "Proxy-Authentication-Info: nextnonce=\"b\"", "X-Kept: 2",
        ])
        let session = self.session()
        let received = try await session.load(server.url()).http
        #expect(received?.value(forHTTPHeaderField: "X-Hop") == "1")
        let stored = try await session.load(server.url()).http
        // HTTP/2 has no Connection field.
        let isNamed = received?.value(forHTTPHeaderField: "Connection") != nil
        #expect((stored?.value(forHTTPHeaderField: "X-Hop") == nil) == isNamed)
        for name in ["Connection", "Proxy-Authenticate", "Proxy-Authentication-Info"] {
            #expect(stored?.value(forHTTPHeaderField: name) == nil, "\(name)")
        }
        #expect(stored?.value(forHTTPHeaderField: "X-Kept") == "2" && server.requests.count == 1)
        session.invalidateAndCancel()
    }

    @Test func equivalentURLsShareOneResponse() async throws {
        let server = try await WebServer()
        server.on("/") { [fields = ["Cache-Control: max-age=600"]] request in
            .text("\(server.requests.count)", request.method == "PUT" ? [] : fields)
        }
        let session = self.session()
        let other = try #require(URL(string: server.url().absoluteString.replacing("http:", with: "HTTP:")))
        #expect(try await session.load(server.url()).text == "1")
        #expect(try await session.load(other).text == "1")
        #expect(try await session.load(.to(other, "PUT", body: "a")).text == "2")
        #expect(try await session.load(server.url()).text == "3")
        session.invalidateAndCancel()
    }

    @Test(arguments: [Answer.text("new", ["Cache-Control: no-store"]), .text("", status: 404)])
    func responseThatMayNotBeStoredTakesThePlaceOfTheOlder(_ answer: Answer) async throws {
        let server = try await WebServer()
        server.on("/", oneByOne: [.text("old", ["Cache-Control: max-age=600"]), answer, .text("next")])
        let session = self.session()
        #expect(try await session.load(server.url()).text == "old")
        _ = try await session.load(.to(server.url(), "GET", ["Cache-Control": "no-cache"]))
        #expect(try await session.load(server.url()).text == "next")
        session.invalidateAndCancel()
    }

    @Test func notModifiedHeadFreshensTheStoredResponse() async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["If-None-Match"] == nil
                ? .text("kept", ["ETag: \"v1\"", "Cache-Control: max-age=0"])
                : .head(304, ["ETag: \"v1\"", "Cache-Control: max-age=600"])
        }
        let session = self.session()
        #expect(try await session.load(server.url()).text == "kept")
        #expect(try await session.load(.to(server.url(), "HEAD")).status == 200)
        #expect(try await session.load(server.url()).text == "kept" && server.requests.count == 2)
        session.invalidateAndCancel()
    }

    @Test func newResponseReplacesTheStaleOne() async throws {
        let server = try await WebServer()
        server.on(
            "/",
            oneByOne: [
                .text("one", ["ETag: \"v1\"", "Cache-Control: max-age=0"]),
                .text("two", ["ETag: \"v2\"", "Cache-Control: max-age=0"]), .head(304, []),
            ])
        let session = self.session()
        for text in ["one", "two", "two"] { #expect(try await session.load(server.url()).text == text) }
        #expect(server.requests.map { $0["If-None-Match"] } == [nil, "\"v1\"", "\"v2\""])
        session.invalidateAndCancel()
    }

    @Test func programsConditionsAreLeftToTheProgram() async throws {
        let server = try await WebServer(["/": .head(304, ["ETag: \"v1\""])])
        let session = self.session()
        let loaded = try await session.load(.to(server.url(), "GET", ["If-None-Match": "\"v1\""]))
        #expect(loaded.status == 304 && loaded.data == Data())
        session.invalidateAndCancel()
    }

    @Test func varyFieldSelectsTheCachedResponse() async throws {
        let server = try await WebServer()
        server.on("/") { .text($0["Accept-Language"] ?? "", ["Vary: Accept-Language", "Cache-Control: max-age=600"]) }
        let session = self.session()
        for language in ["de", "de", "en"] {
            let loaded = try await session.load(.to(server.url(), "GET", ["Accept-Language": language]))
            #expect(loaded.text == language)
        }
        #expect(server.requests.count == 2)
        session.invalidateAndCancel()
    }

    @Test func policyOfTheRequestIsFollowed() async throws {
        let server = try await self.fresh()
        let session = self.session()
        func load(_ policy: URLRequest.CachePolicy) async throws -> Loaded {
            try await session.load(URLRequest(url: server.url(), cachePolicy: policy))
        }
        let nothing = try await load(.returnCacheDataDontLoad)
        #expect(nothing.code == .resourceUnavailable && server.requests.isEmpty)
        #expect(try await load(.returnCacheDataElseLoad).text == "first")
        #expect(try await load(.returnCacheDataElseLoad).text == "first")
        #expect(try await load(.returnCacheDataDontLoad).text == "first")
        #expect(server.requests.count == 1)
        #expect(try await load(.reloadIgnoringLocalCacheData).text == "second")
        #expect(try await load(.reloadIgnoringLocalAndRemoteCacheData).text == "second")
        #expect(server.requests.last?["Cache-Control"] == "no-cache" && server.requests.count == 3)
        #expect(try await load(.reloadRevalidatingCacheData).text == "second")
        #expect(server.requests.count == 4)
        #expect(try await load(.useProtocolCachePolicy).text == "second" && server.requests.count == 4)
        session.invalidateAndCancel()
    }

    @Test func policyOfTheConfigurationIsFollowed() async throws {
        let server = try await self.fresh()
        let session = self.session(.reloadIgnoringLocalCacheData)
        #expect(try await session.load(server.url()).text == "first")
        #expect(try await session.load(server.url()).text == "second")
        session.invalidateAndCancel()
    }

    @Test func delegateDecidesAboutCaching() async throws {
        let server = try await self.fresh()
        for keeps in [true, false] {
            var policies = Policies()
            policies.caching = { proposed in
                keeps ? CachedURLResponse(response: proposed.response, data: Data("mine".utf8)) : nil
            }
            let recorder = DataRecorder(policies)
            let session = URLSession.test(recorder)
            session.dataTask(with: server.url()).resume()
            let notes = try await recorder.end()
            #expect(notes.cached.count == 1 && notes.cached.first?.data == notes.data)
            let kept = session.configuration.urlCache?.cachedResponse(for: URLRequest(url: server.url()))
            #expect(kept?.data == (keeps ? Data("mine".utf8) : nil))
            session.invalidateAndCancel()
        }
    }

    @Test func delegateIsAskedForStorableResponsesOnly() async throws {
        let lasting = ["Cache-Control: max-age=600"]
        let server = try await WebServer([
            "/no": .text("x", ["Cache-Control: no-store"]),
            "/error": .text("x", status: 500), "/gone": .text("x", lasting, status: 410),
            "/missing": .text("x", lasting, status: 404), "/choices": .text("x", lasting, status: 300),
        ])
        let asked = [
            ("/no", "GET"), ("/error", "GET"), ("/no", "POST"), ("/gone", "GET"), ("/missing", "GET"),
            ("/choices", "GET"),
        ]
        for (path, method) in asked {
            let recorder = DataRecorder()
            try await recorder.run(.to(server.url(path), method))
            #expect(recorder.log.count("will cache") == 0)
        }
    }

    /// A value for `Date` one hour ago.
    private static let anHourAgo: String = {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSinceNow: -3600))
    }()

    @Test(arguments: [true, false])
    func responseChangedByTheDelegateIsStored(_ isFresh: Bool) async throws {
        let fields = isFresh ? [] : ["Date: \(Self.anHourAgo)"]
        let server = try await self.fresh(["Cache-Control: max-age=600", "Vary: Accept-Encoding"] + fields)
        var policies = Policies()
        policies.caching = { CachedURLResponse(response: $0.response, data: Data("mine".utf8)) }
        let recorder = DataRecorder(policies)
        let session = URLSession.test(recorder)
        session.dataTask(with: server.url()).resume()
        #expect(try await recorder.end().data == Data("first".utf8))
        #expect(try await session.load(server.url()).text == (isFresh ? "mine" : "second"))
        #expect(server.requests.count == (isFresh ? 1 : 2))
        session.invalidateAndCancel()
    }

    enum Place: CaseIterable { case memory, disk }

    @Test(arguments: Place.allCases)
    func responseStoredByTheProgramIsUsed(_ place: Place) async throws {
        let server = try await WebServer()
        server.on("/") { request in
            request["If-None-Match"] == "\"v1\"" ? .head(304, ["Cache-Control: max-age=600"]) : .text("the server's")
        }
        let folder = try TemporaryFolder()
        func session() -> URLSession {
            URLSession.test {
                $0.urlCache = URLCache(
                    memoryCapacity: place == .memory ? 1 << 20 : 0, diskCapacity: place == .disk ? 1 << 20 : 0,
                    directory: folder.url)
                $0.httpAdditionalHeaders = ["X-A": "of the session"]
            }
        }
        func text(storing fields: [String: String]) async throws -> String? {
            let storing = session()
            let response = try #require(
                HTTPURLResponse(url: server.url(), statusCode: 200, httpVersion: "HTTP/1.1", headerFields: fields))
            let loading = place == .memory ? storing : session()
            storing.configuration.urlCache?.storeCachedResponse(
                CachedURLResponse(response: response, data: Data("mine".utf8)), for: URLRequest(url: server.url()))
            defer { for session in [storing, loading] { session.invalidateAndCancel() } }
            return try await loading.load(server.url()).text
        }
        let lasting = ["Cache-Control": "max-age=600"]
        #expect(try await text(storing: lasting) == "mine")
        for names in ["Accept-Encoding", "X-A, User-Agent", "*"] {
            #expect(try await text(storing: lasting.merging(["Vary": names]) { $1 }) == "mine")
        }
        #expect(server.requests.isEmpty)
        // Its Date field makes it stale.
        #expect(try await text(storing: lasting.merging(["Date": Self.anHourAgo]) { $1 }) == "the server's")
        #expect(try await text(storing: [:]) == "the server's")
        #expect(try await text(storing: ["Etag": "\"v1\"", "Cache-Control": "no-cache"]) == "mine")
        #expect(server.requests.count == 3)
    }

    @Test func responseOverTLSIsCachedOnDisk() async throws {
        let fields = ["Cache-Control: max-age=600"]
        let server = try await WebServer(tls: Certificates.server(), ["/": .text("kept", fields)])
        let folder = try TemporaryFolder()
        for _ in 0..<2 {
            let recorder = DataRecorder(.trusting)
            let notes = try await recorder.run(server.url()) {
                $0.urlCache = URLCache(memoryCapacity: 0, diskCapacity: 1 << 20, directory: folder.url)
            }
            #expect(notes.data == Data("kept".utf8) && notes.cached.allSatisfy { $0.storagePolicy == .allowed })
        }
        #expect(server.requests.count == 1)
    }

    @Test func varyFieldCoversFieldsOfTheSession() async throws {
        let server = try await self.fresh(["Cache-Control: max-age=600", "Vary: Accept-Encoding, Cookie"])
        let session = self.session()
        for _ in 0..<2 { #expect(try await session.load(server.url()).text == "first") }
        let cookie = try #require(
            HTTPCookie(properties: [.name: "a", .value: "b", .domain: "127.0.0.1", .path: "/"]))
        session.configuration.httpCookieStorage?.setCookie(cookie)
        #expect(try await session.load(server.url()).text == "second" && server.requests.count == 2)
        session.invalidateAndCancel()
    }

    @Test func unsafeMethodInvalidatesTheCachedResponse() async throws {
        let server = try await self.fresh()
        let session = self.session()
        #expect(try await session.load(server.url()).text == "first")
        _ = try await session.load(.to(server.url(), "POST", body: "change"))
        #expect(try await session.load(server.url()).text == "second")
        session.invalidateAndCancel()
    }

    @Test func brokenResponseIsNotKept() async throws {
        let server = try await WebServer()
        let whole = Answer.text("whole", ["Cache-Control: max-age=600"])
        server.on("/", oneByOne: [whole.broken(at: whole.bytes.count - 1, by: .close), whole])
        let session = self.session()
        #expect(try await session.load(server.url()).error != nil)
        #expect(try await session.load(server.url()).text == "whole" && server.requests.count == 2)
        session.invalidateAndCancel()
    }

    @Test func redirectIsCachedWithItsTarget() async throws {
        let server = try await WebServer([
            "/": .redirect(301, to: "/there", ["Cache-Control: max-age=600"]),
            "/there": .text("hello", ["Cache-Control: max-age=600"]),
        ])
        let session = self.session()
        for _ in 0..<2 { #expect(try await session.load(server.url()).text == "hello") }
        #expect(server.requests("/there").count == 1)
        session.invalidateAndCancel()
    }

    @Test func programCanStoreAResponseForATask() async throws {
        let server = try await self.fresh()
        let session = self.session()
        let cache = try #require(session.configuration.urlCache)
        let task = session.dataTask(with: server.url())
        let response = try #require(
            HTTPURLResponse(
                url: server.url(), statusCode: 200, httpVersion: "HTTP/1.1",
                headerFields: ["Cache-Control": "max-age=600"]))
        cache.storeCachedResponse(CachedURLResponse(response: response, data: Data("mine".utf8)), for: task)
        let found = Outcome<Data?>()
        cache.getCachedResponse(for: task) { found.give($0?.data) }
        #expect(try await found.value() == Data("mine".utf8))
        cache.removeCachedResponse(for: task)
        let gone = Outcome<Data?>()
        cache.getCachedResponse(for: task) { gone.give($0?.data) }
        #expect(try await gone.value() == nil)
        session.invalidateAndCancel()
    }

    @Test func downloadIsNotCached() async throws {
        let server = try await self.fresh()
        let session = self.session()
        let (url, _) = try await session.download(from: server.url())
        try FileManager.default.removeItem(at: url)
        #expect(session.configuration.urlCache?.cachedResponse(for: URLRequest(url: server.url())) == nil)
        session.invalidateAndCancel()
    }
}
