import Rooms
import Testing

@Suite("Limits of one client of the rooms")
struct RoomClientLimitTests {
    @Test func temporaryErrorsDoNotEndTheConnection() {
        var scene = ClientScene(ClientScene.authority { $0.publicationRate = 1 }) { $0.maximumErrors = 3 }
        _ = scene.connect()
        _ = scene.join("a")
        let publish = Command.Request.publish(channel: "a", Payload.json(Array("1".utf8)))
        for _ in 0..<10 {
            scene.advance(1)
            // The broker is away for this one, and the next one is above the rate.
            guard case .publish(let number, _, _, _)? = scene.send(publish).first else {
                Issue.record("the publication was refused")
                return
            }
            scene.client.completed(.error(number: number, .internal))
            #expect(scene.actions() == ClientScene.error(.internal))
            #expect(scene.send(publish) == ClientScene.error(.tooManyRequests))
        }
        #expect(scene.send(.rpc) == ClientScene.error(.notAvailable))
    }

    @Test func errorsOfFormerHoursDoNotCount() {
        var scene = ClientScene(ClientScene.authority()) { $0.maximumErrors = 3 }
        _ = scene.connect()
        for _ in 0..<10 {
            for _ in 0..<3 { #expect(scene.send(.rpc) == ClientScene.error(.notAvailable)) }
            scene.advance(3600)
        }
        for _ in 0..<3 { _ = scene.send(.rpc) }
        #expect(scene.send(.rpc).last == .close(.tooManyErrors))
    }

    @Test func entriesAreBoundedWhereMembersHearOfThem() {
        var scene = ClientScene(
            ClientScene.authority {
                $0.sendsJoinLeave = true
                $0.joinRate = 2
            })
        _ = scene.connect()
        // Half a minute's worth at once, in whichever rooms of the policy.
        for count in 0..<60 {
            let room = count % 2 == 0 ? "a" : "b"
            #expect(scene.join(room).count == 1)
            _ = scene.send(.unsubscribe(channel: room))
        }
        #expect(scene.join("a") == ClientScene.error(.tooManyRequests))
        scene.advance(1)
        for _ in 0..<2 {
            #expect(scene.join("b").count == 1)
            _ = scene.send(.unsubscribe(channel: "b"))
        }
        #expect(scene.join("b") == ClientScene.error(.tooManyRequests))
    }

    @Test func entriesWithoutJoinLeaveHaveNoRate() {
        var scene = ClientScene(ClientScene.authority { $0.joinRate = 1 }) { $0.commandRate = 10_000 }
        _ = scene.connect()
        for _ in 0..<100 {
            #expect(scene.join("a").count == 1)
            _ = scene.send(.unsubscribe(channel: "a"))
        }
    }
}
