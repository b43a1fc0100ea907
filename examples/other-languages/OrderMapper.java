package shop;

import java.time.LocalDateTime;
import org.apache.ibatis.annotations.Mapper;
import org.apache.ibatis.annotations.Param;

/** Its statements are in OrderMapper.xml. */
@Mapper
public interface OrderMapper {
    void insertOrder(Order order);

    void insertMessage(@Param("type") String type, @Param("key") String key,
                       @Param("topic") String topic, @Param("body") String body);

    /** What is null is left out of the message; deliverAt is in UTC. */
    void insertWholeMessage(@Param("type") String type, @Param("key") String key,
                            @Param("topic") String topic, @Param("body") String body,
                            @Param("contentType") String contentType, @Param("headers") String headers,
                            @Param("orderingKey") String orderingKey, @Param("deliverAt") LocalDateTime deliverAt);
}
