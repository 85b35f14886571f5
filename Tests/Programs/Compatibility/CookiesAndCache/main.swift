// CookiesAndCache BASE: BASE/login sets a cookie that BASE/name asks for; BASE/count counts its visits and may be kept.
import Foundation
import URLLoading

func fail(_ reason: String) -> Never {
    print(reason)
    exit(1)
}

func load(_ request: URLRequest, in session: URLSession) async throws -> String {
    let (data, response) = try await session.data(for: request)
    guard let answer = response as? HTTPURLResponse, answer.statusCode == 200 else { fail("\(response)") }
    return String(decoding: data, as: UTF8.self)
}

let arguments = CommandLine.arguments
guard arguments.count == 2, let base = URL(string: arguments[1]) else {
    print("usage: CookiesAndCache BASE")
    exit(64)
}

do {
    let configuration = URLSessionConfiguration.ephemeral
    let cache = URLCache(memoryCapacity: 1 << 20, diskCapacity: 0, diskPath: nil)
    configuration.urlCache = cache
    let session = URLSession(configuration: configuration)
    let name = URLRequest(url: base.appendingPathComponent("name"))

    guard try await load(name, in: session) == "nobody" else { fail("known before the login") }
    _ = try await load(URLRequest(url: base.appendingPathComponent("login")), in: session)
    guard let storage = configuration.httpCookieStorage, let cookie = storage.cookies(for: base)?.first,
        cookie.name == "user", cookie.value == "ada", cookie.isHTTPOnly
    else { fail("no cookie was kept") }
    guard try await load(name, in: session) == "ada" else { fail("the cookie was not sent") }

    var silent = name
    silent.httpShouldHandleCookies = false
    guard try await load(silent, in: session) == "nobody" else { fail("the cookie was sent all the same") }
    storage.deleteCookie(cookie)
    guard try await load(name, in: session) == "nobody" else { fail("the cookie is still there") }

    var count = URLRequest(url: base.appendingPathComponent("count"))
    let first = try await load(count, in: session)
    guard try await load(count, in: session) == first else { fail("what is fresh was loaded again") }
    count.cachePolicy = .reloadIgnoringLocalCacheData
    let second = try await load(count, in: session)
    guard second != first else { fail("what was to be loaded came from the cache") }
    count.cachePolicy = .returnCacheDataDontLoad
    guard try await load(count, in: session) == second else { fail("the cache did not keep the newer answer") }
    cache.removeAllCachedResponses()
    do {
        _ = try await load(count, in: session)
        fail("an empty cache gave something")
    } catch let error as URLError where error.code == .resourceUnavailable {
        print("cookies and cache work")
    }
} catch {
    fail("failed: \(error)")
}
