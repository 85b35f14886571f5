import ControlPlane
import Testing

@Suite("Entity tags and If-Match, RFC 9110 §13.1.1")
struct EntityTagTests {
    private let tag = EntityTag(revision: 7)

    @Test func theTagThatIsThereMatches() {
        #expect(EntityTag.matches(self.tag.description, self.tag))
        #expect(EntityTag.matches("\"x\",  \(self.tag) , \"y\"", self.tag))
        #expect(EntityTag.matches("*", self.tag))
        #expect(EntityTag.matches(nil, self.tag) && EntityTag.matches(nil, nil))
    }

    @Test func anotherOneOrNothingDoesNot() {
        #expect(!EntityTag.matches(EntityTag(revision: 8).description, self.tag))
        #expect(!EntityTag.matches("W/\(self.tag)", self.tag))
        #expect(!EntityTag.matches("", self.tag))
        #expect(!EntityTag.matches("*", nil) && !EntityTag.matches(self.tag.description, nil))
    }
}
